"""
RSA on a crypto device: DPDK's crypto_openssl, which takes the road that a card takes.
"""

import subprocess
import unittest

from harness import SALLYPORT, Case, ours_alone, run
from test_crypto_queue import QueueCase

DEVICE = "    crypto-backend cryptodev:crypto_openssl"

# Columns of the statistics page: done by openssl, multibuffer, threads, cryptodev; failed.
OPENSSL, MULTIBUFFER, THREADS, CRYPTODEV, FAILED = range(5)


def why_no_device():
    """None, or why this machine or build has no crypto device."""
    done = subprocess.run(
        [SALLYPORT, "crypto", "asym", "--algo", "rsa2048", "--backend", "cryptodev:crypto_openssl", "--fill", "1",
         "--rounds", "1", "--slice", "1"], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode and "built without DPDK" in done.stderr:
        return done.stderr.strip()
    return None


class DeviceCase(QueueCase):
    def setUp(self):
        super().setUp()
        why = why_no_device()
        if why:
            self.skipTest(why)


@ours_alone
class Device(DeviceCase):
    def test_rsa_runs_there(self):
        proxy = self.start(DEVICE)
        for port in ("rsa", "rsa4096"):
            for version in ("1.2", "1.3"):
                for _ in range(3):
                    self.assertEqual(self.get(proxy, port, "--tlsv" + version, "--tls-max", version), "d" * 612)
        self.assertEqual(self.get(proxy, "old"), "d" * 612)
        self.assertEqual(self.get(proxy, "ec"), "d" * 612)
        self.assertEqual(self.get(proxy, "p384"), "d" * 612)
        rows, text = self.table(proxy)
        for row, least in (("RSA-2048", 7), ("RSA-4096", 6)):
            cells = rows[row]
            self.assertGreaterEqual(int(cells[CRYPTODEV]), least, text)
            self.assertEqual([int(cells[i]) for i in (OPENSSL, MULTIBUFFER, THREADS, FAILED)], [0] * 4, text)
        # What it has not is counted, with the reason.
        self.assertEqual(int(rows["P-256 sign"][CRYPTODEV]), 0, text)
        self.assertIn("the device does not do it", rows["P-256 sign"][-2], text)
        proxy.stop()

    def test_many_at_a_time(self):
        proxy = self.start(DEVICE)
        for port in ("rsa", "rsa4096"):
            run("ab", "-q", "-n", "200", "-c", "40", proxy.url(port, "/document", "https"))
        rows, text = self.table(proxy)
        self.assertGreaterEqual(int(rows["RSA-2048"][CRYPTODEV]), 200, text)
        self.assertGreaterEqual(int(rows["RSA-4096"][CRYPTODEV]), 200, text)
        proxy.stop()

    def test_with_other_backends(self):
        for settings in (DEVICE + " prefer\n    crypto-threads 1", DEVICE + "\n    crypto-backend openssl require",
                         DEVICE + "\n    crypto-backend multibuffer off"):
            with self.subTest(settings.strip()):
                proxy = self.start(settings)
                self.assertEqual(self.get(proxy, "rsa"), "d" * 612)
                self.assertEqual(self.get(proxy, "ec"), "d" * 612)
                rows, text = self.table(proxy)
                self.assertGreaterEqual(int(rows["RSA-2048"][CRYPTODEV]), 1, text)
                proxy.stop()

    def test_off(self):
        proxy = self.start(DEVICE + " off")
        self.assertEqual(self.get(proxy, "rsa"), "d" * 612)
        rows, text = self.table(proxy)
        self.assertEqual(int(rows["RSA-2048"][CRYPTODEV]), 0, text)
        proxy.stop()


@ours_alone
class Settings(DeviceCase):
    def check(self, line, *options):
        path = self.write("bad.cfg", "global\n    crypto-backend " + line +
                          "\nfrontend f\n    mode http\n    bind unix@%s\n" % self.path("s"))
        return subprocess.run([SALLYPORT, *options, "-f", path], capture_output=True, text=True, timeout=120, check=False)

    def test_missing_device_is_one_error(self):
        for options in (["-c"], [], ["-D"]):
            with self.subTest(options):
                done = self.check("cryptodev:crypto_nonsense", *options)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, r"bad.cfg:2: error: 'crypto-backend cryptodev:crypto_nonsense': .*makes no device")
                self.assertEqual(done.stderr.count("error:"), 1, done.stderr)

    def test_a_device_without_rsa(self):
        done = self.check("cryptodev:crypto_aesni_mb", "-c")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("crypto_aesni_mb does no private-key operations", done.stderr)

    def test_fewer_queue_pairs_than_workers(self):
        done = self.check("cryptodev:crypto_openssl,max_nb_queue_pairs=2\n    nbthread 3", "-c")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("crypto_openssl has 2 queue pairs, and 3 are needed", done.stderr)

    def test_preferred_and_missing_is_a_warning(self):
        done = self.check("cryptodev:crypto_nonsense prefer", "-c")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"bad.cfg:2: warning: crypto-backend cryptodev:crypto_nonsense is not there .* instead")

    def test_words(self):
        for line, message in (("cryptodev require", r"expected .*'cryptodev:DEVICE'"),
                              ("cryptodev: require", r"missing name after 'cryptodev:'"),
                              ("cryptodev:crypto_openssl always", r"'always'.*require")):
            with self.subTest(line):
                done = self.check(line, "-c")
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, message)


@ours_alone
class Missing(Case):
    def test_without_the_module(self):
        """A program that was built without DPDK, or moved away from its module, says so."""
        path = self.path("sallyport")
        with open(SALLYPORT, "rb") as source, open(path, "wb") as copy:
            copy.write(source.read())
        subprocess.run(["chmod", "755", path], check=True)
        config = self.write("a.cfg", "global\n" + DEVICE + "\nfrontend f\n    mode http\n    bind unix@%s\n" % self.path("s"))
        done = subprocess.run([path, "-c", "-f", config], capture_output=True, text=True, timeout=120, check=False)
        if done.returncode == 0:
            self.skipTest("the module is installed on this machine, where every program finds it")
        self.assertRegex(done.stderr, r"a.cfg:2: error: .*built without DPDK: install libdpdk-dev then make clean all")


if __name__ == "__main__":
    unittest.main()
