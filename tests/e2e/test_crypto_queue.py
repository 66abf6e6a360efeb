"""
The crypto queue under real clients: every kind of key and version on every backend, what the statistics page shows of
it, clients that vanish in the middle, the bound of waiting operations, reloads with operations in flight.
"""

import os
import re
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
import unittest

from harness import (LIMITS, SALLYPORT, Authority, Case, curl, is_sanitized, ours_alone, require, run, unverified_context,
                     wait_until)

CONFIG = """
global
    nbthread 2
    maxconn 4000
%s
defaults
    mode http
""" + LIMITS + """
frontend web
    bind 127.0.0.1:@rsa@ ssl crt @dir@/certs/rsa.pem
    bind 127.0.0.1:@rsa4096@ ssl crt @dir@/certs/rsa4096.pem
    bind 127.0.0.1:@ec@ ssl crt @dir@/certs/ec.pem
    bind 127.0.0.1:@p384@ ssl crt @dir@/certs/p384.pem
    bind 127.0.0.1:@old@ ssl crt @dir@/certs/rsa.pem ciphers AES128-GCM-SHA256 ssl-max-ver TLSv1.2
    bind 127.0.0.1:@mutual@ ssl crt @dir@/certs/rsa.pem ca-file @dir@/certs/ca.crt verify required
    bind 127.0.0.1:@plain@
    stats enable
    stats uri /stats
    default_backend app
backend app
    server s1 127.0.0.1:@origin@
"""

PORTS = ["rsa", "rsa4096", "ec", "p384"]


def has_lanes():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        return "avx512ifma" in file.read()


class QueueCase(Case):
    def start(self, settings="", **options):
        origin = self.nginx()
        origin.file("document", b"d" * 612)
        if not os.path.exists(self.path("certs")):
            self.make_certificates()
        return self.proxy(CONFIG % settings, origin=origin.port, **options)

    def make_certificates(self):
        authority = Authority(self.path("certs"))
        authority.issue("rsa.pem", "localhost", ["127.0.0.1"], key="rsa")
        authority.issue("ec.pem", "localhost", ["127.0.0.1"])
        authority.issue("client.pem", "client", key="rsa")
        for name, key in (("rsa4096", ["rsa:4096"]), ("p384", ["ec", "-pkeyopt", "ec_paramgen_curve:P-384"])):
            self.self_signed(name, key)

    def self_signed(self, name, key):
        pem = self.path("certs/%s.pem" % name)
        run("openssl", "req", "-x509", "-nodes", "-newkey", *key, "-subj", "/CN=localhost", "-days", "2",
            "-keyout", pem + ".k", "-out", pem + ".c")
        with open(pem, "wb") as out:
            for part in (".c", ".k"):
                with open(pem + part, "rb") as file:
                    out.write(file.read())
        os.remove(pem + ".k")
        os.remove(pem + ".c")

    def get(self, proxy, port, *options):
        return curl("-k", *options, proxy.url(port, "/document", "https"))

    def table(self, proxy):
        """The statistics page's rows: operation -> cells."""
        page = curl(proxy.url("plain", "/stats"))
        found = re.search(r"<h2>Crypto queue.*?</table>", page, re.DOTALL)
        self.assertIsNotNone(found, page)
        rows = {}
        for row in re.findall(r"<tr><th>(.*?)</tr>", found.group(0), re.DOTALL):
            cells = re.split(r"</t[hd]>(?:<td[^>]*>)?", row)
            rows[cells[0]] = cells[1:]
        return rows, found.group(0)



@ours_alone
class Queue(QueueCase):
    def check_all_kinds(self, proxy):
        for port in PORTS:
            for version in ("1.2", "1.3"):
                self.assertEqual(self.get(proxy, port, "--tlsv" + version, "--tls-max", version), "d" * 612)
        self.assertEqual(self.get(proxy, "old"), "d" * 612)
        self.assertEqual(self.get(proxy, "rsa", "--curves", "P-256"), "d" * 612)
        self.assertEqual(self.get(proxy, "rsa", "--curves", "P-521"), "d" * 612)
        self.assertEqual(self.get(proxy, "mutual", "--cert", self.path("certs/client.pem")), "d" * 612)
        refused = curl("-k", proxy.url("mutual", "/document", "https"), check=False)
        self.assertNotEqual(refused.returncode, 0)

    def ab(self, proxy, port, requests, clients, *options):
        require("ab")
        out = run("ab", "-q", "-n", str(requests), "-c", str(clients), *options, proxy.url(port, "/document", "https"))
        self.assertRegex(out, r"Failed requests: +0\b", out)
        self.assertRegex(out, r"Complete requests: +%d\b" % requests)

    def test_every_kind_on_every_backend(self):
        for settings in ("", "    crypto-backend openssl require", "    crypto-threads 2",
                         "    crypto-threads 1\n    crypto-backend threads require", "    ssl-engine openssl",
                         "    ssl-engine threads", "    ssl-engine multibuffer algo RSA",
                         "    ssl-engine multibuffer\n    ssl-mode-async"):
            with self.subTest(settings.strip()):
                proxy = self.start(settings)
                self.check_all_kinds(proxy)
                proxy.stop()

    def test_a_foreign_provider_takes_its_place(self):
        """OpenSSL's own "legacy" provider stands for one of a card: it has none of these operations."""
        proxy = self.start("    ssl-engine legacy")
        self.check_all_kinds(proxy)
        self.assertNotIn("Crypto queue", curl(proxy.url("plain", "/stats")))

    def test_lanes_fill(self):
        if not has_lanes():
            self.skipTest("this CPU lacks AVX-512 IFMA: there are no lanes to fill")
        proxy = self.start("    crypto-backend multibuffer require")
        self.ab(proxy, "rsa4096", 400, 40, "-f", "TLS1.2")
        rows, text = self.table(proxy)
        cells = rows["RSA-4096"]
        self.assertGreaterEqual(int(cells[1]), 400, text)
        self.assertEqual(int(cells[0]), 0, text)
        self.assertGreater(int(cells[13]), 20, text)  # batches of eight
        self.assertGreaterEqual(int(rows["X25519 derive"][1]), 400, text)

    def test_threads_do_it(self):
        proxy = self.start("    crypto-threads 2")
        self.ab(proxy, "rsa", 400, 40)
        rows, text = self.table(proxy)
        self.assertGreaterEqual(int(rows["RSA-2048"][2]), 400, text)
        self.assertIn("2 crypto threads", text)

    def test_other_keys_are_counted(self):
        proxy = self.start()
        for _ in range(3):
            self.get(proxy, "p384")
        rows, text = self.table(proxy)
        self.assertGreaterEqual(int(rows["other"][0]), 3, text)

    def test_bound_of_waiting_operations(self):
        """A full queue refuses what needs RSA at the ClientHello; an ECDSA certificate still works."""
        proxy = self.start("    crypto-queue-max 1\n    nbthread 1\n    crypto-backend openssl require")
        outcomes = {"ok": 0, "refused": 0}

        def client():
            for _ in range(6):
                try:
                    with socket.create_connection(("127.0.0.1", proxy.ports["rsa4096"]), 30) as plain, \
                            unverified_context().wrap_socket(plain):
                        outcomes["ok"] += 1
                except (ssl.SSLError, OSError):
                    outcomes["refused"] += 1

        threads = [threading.Thread(target=client) for _ in range(16)]
        for thread in threads:
            thread.start()
        self.assertEqual(self.get(proxy, "ec"), "d" * 612)
        for thread in threads:
            thread.join()
        self.assertGreater(outcomes["ok"], 0)
        self.assertGreater(outcomes["refused"], 0)
        page = curl(proxy.url("plain", "/stats"))
        self.assertEqual(int(re.search(r"(\d+) handshakes refused", page).group(1)), outcomes["refused"])
        self.assertEqual(self.get(proxy, "rsa4096"), "d" * 612)

    def test_reload_with_operations_in_flight(self):
        for settings in ("", "    crypto-threads 2"):
            with self.subTest(settings.strip()):
                proxy = self.start(settings)
                load = subprocess.Popen(
                    ["ab", "-q", "-r", "-t", "4", "-n", "100000", "-c", "30", proxy.url("rsa4096", "/document", "https")],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(1)
                proxy.signal(signal.SIGUSR1)
                # It finishes what it has and ends by itself.
                proxy.check_end(proxy.wait(30))
                load.kill()
                load.wait()

    def test_stop_with_operations_in_flight(self):
        proxy = self.start("    crypto-threads 1")
        load = subprocess.Popen(
            ["ab", "-q", "-r", "-t", "4", "-n", "100000", "-c", "50", proxy.url("rsa4096", "/document", "https")],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(1)
        proxy.stop()
        load.kill()
        load.wait()


@ours_alone
class Vanishing(QueueCase):
    """
    Clients that are gone when their operation is done. SP_VANISHING_CLIENTS is their number: 100,000 have been run.
    """

    def hello(self):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = unverified_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return outgoing.read()

    def vanish(self, port, hello, count):
        for i in range(count):
            with socket.create_connection(("127.0.0.1", port), 10) as sock:
                sock.sendall(hello)
                if i % 3:
                    time.sleep(0.0005 * (i % 7))
                if i % 2:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def check_leaves_nothing(self, settings):
        proxy = self.start(settings)
        count = int(os.environ.get("SP_VANISHING_CLIENTS", "2000" if is_sanitized() else "4000"))
        hello = self.hello()
        for port in PORTS:
            self.assertEqual(self.get(proxy, port), "d" * 612)
        before = proxy.descriptors()
        threads = [threading.Thread(target=self.vanish, args=(proxy.ports[port], hello, count // 8))
                   for port in PORTS for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_until(lambda: proxy.descriptors() <= before + 4, "the descriptors to come back")
        for port in PORTS:
            self.assertEqual(self.get(proxy, port), "d" * 612)
        # The leak detector of the sanitizer build looks at the end.
        proxy.stop()

    def test_in_lanes(self):
        self.check_leaves_nothing("")

    def test_with_threads(self):
        self.check_leaves_nothing("    crypto-threads 2")

    def test_scalar(self):
        self.check_leaves_nothing("    crypto-backend openssl require")


@ours_alone
class Settings(Case):
    def check(self, lines, message):
        path = self.write("bad.cfg", "global\n" + lines + "\nfrontend f\n    mode http\n    bind 127.0.0.1:0\n")
        done = subprocess.run([SALLYPORT, "-c", "-f", path], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, message)

    def test_errors(self):
        self.check("    crypto-backend lanes prefer", r":2: error: .*crypto-backend.*lanes.*multibuffer")
        self.check("    crypto-backend multibuffer always", r":2: error: .*always.*require")
        self.check("    crypto-backend multibuffer", r":2: error: .*crypto-backend")
        self.check("    crypto-backend openssl off", r":2: error: .*openssl.*cannot be off")
        self.check("    crypto-threads 300", r":2: error: .*crypto-threads.*300")
        self.check("    crypto-queue-max many", r":2: error: .*crypto-queue-max.*many")
        self.check("    ssl-engine multibuffer algo RSA,FOO", r":2: error: .*FOO.*RSA")
        self.check("    io-engine kqueue", r":2: error: .*io-engine.*kqueue")
        self.check("    crypto-backend openssl require\n    crypto-backend multibuffer require",
                   r":3: error: .*exclude each other")


if __name__ == "__main__":
    unittest.main()
