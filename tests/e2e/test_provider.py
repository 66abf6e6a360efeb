"""
The provider in other programs: the openssl tool loads sallyport.so and works with it as without.

SALLYPORT_MODULE names the module (default src/provider/sallyport.so beside the program).
"""

import os
import re
import subprocess
import tempfile
import unittest

import harness

MODULE = os.path.abspath(
    os.environ.get("SALLYPORT_MODULE", os.path.join(harness.ROOT, "build", "src", "provider", "sallyport.so"))
)
KINDS = {
    "rsa": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
    "rsa1024": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"],
    "p256": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "p384": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
}


@unittest.skipUnless(os.path.exists(MODULE), "there is no " + MODULE)
class ProviderTest(unittest.TestCase):
    def setUp(self):
        harness.require("openssl")
        folder = tempfile.TemporaryDirectory(prefix="sallyport-provider-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.message = self.path("message")
        with open(self.message, "wb") as file:
            file.write(b"the message\n" * 3)

    def path(self, name):
        return os.path.join(self.folder, name)

    def openssl(self, command, *args, ours=True, check=True):
        line = ["openssl", command]
        if ours:
            line += ["-provider-path", os.path.dirname(MODULE), "-provider", "sallyport"]
            line += ["-provider", "default", "-propquery", "?provider=sallyport"]
        line += args
        environment = dict(os.environ, OPENSSL_CONF="/dev/null")
        done = subprocess.run(
            line, capture_output=True, cwd=self.folder, env=environment, timeout=120, check=False
        )
        if check:
            self.assertEqual(done.returncode, 0, (line, done.stderr))
        return done

    def key(self, kind, ours):
        name = self.path("%s-%d.pem" % (kind, ours))
        self.openssl("genpkey", *KINDS[kind], "-out", name, ours=ours)
        return name

    def test_is_listed(self):
        done = self.openssl("list", "-providers", "-provider-path", os.path.dirname(MODULE),
                            "-provider", "sallyport", ours=False)
        self.assertIn(b"Sallyport crypto queue", done.stdout)
        done = self.openssl("list", "-signature-algorithms", "-provider-path", os.path.dirname(MODULE),
                            "-provider", "sallyport", ours=False)
        self.assertRegex(done.stdout, rb"ECDSA @ sallyport")

    def test_exports_nothing_else(self):
        harness.require("nm")
        done = subprocess.run(["nm", "-D", "--defined-only", MODULE], capture_output=True, check=True)
        names = [line.split()[-1] for line in done.stdout.decode().splitlines()]
        self.assertEqual(names, ["OSSL_provider_init"])

    def test_signs_and_verifies(self):
        for kind in KINDS:
            for makes in (True, False):
                key = self.key(kind, makes)
                public, signature = self.path("public.pem"), self.path("signature")
                self.openssl("pkey", "-in", key, "-pubout", "-out", public, ours=makes)
                for signs in (True, False):
                    self.openssl("dgst", "-sha256", "-sign", key, "-out", signature, self.message,
                                 ours=signs)
                    for verifies in (True, False):
                        with self.subTest(kind=kind, makes=makes, signs=signs, verifies=verifies):
                            self.openssl("dgst", "-sha256", "-verify", public, "-signature", signature,
                                         self.message, ours=verifies)

    def test_pss_and_decryption(self):
        key, public = self.key("rsa", True), self.path("public.pem")
        self.openssl("pkey", "-in", key, "-pubout", "-out", public)
        pss = ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:-1"]
        signature, secret = self.path("signature"), self.path("secret")
        self.openssl("dgst", "-sha384", *pss, "-sign", key, "-out", signature, self.message)
        self.openssl("dgst", "-sha384", *pss, "-verify", public, "-signature", signature,
                     self.message, ours=False)
        for mode in ("pkcs1", "oaep"):
            option = ["-pkeyopt", "rsa_padding_mode:" + mode]
            self.openssl("pkeyutl", "-encrypt", *option, "-pubin", "-inkey", public, "-in", self.message,
                         "-out", secret, ours=False)
            done = self.openssl("pkeyutl", "-decrypt", *option, "-inkey", key, "-in", secret)
            with open(self.message, "rb") as file:
                self.assertEqual(done.stdout, file.read())

    def test_agrees(self):
        for option in (["-algorithm", "X25519"], KINDS["p256"], KINDS["p384"]):
            secrets = set()
            for who in ("a", "b"):
                self.openssl("genpkey", *option, "-out", self.path(who), ours=who == "a")
                self.openssl("pkey", "-in", self.path(who), "-pubout", "-out",
                             self.path(who + ".pub"), ours=who == "b")
            for own, peer, ours in (("a", "b", True), ("b", "a", True), ("a", "b", False)):
                done = self.openssl("pkeyutl", "-derive", "-inkey", self.path(own), "-peerkey",
                                    self.path(peer + ".pub"), ours=ours)
                secrets.add(done.stdout)
            self.assertEqual(len(secrets), 1)
            self.assertGreaterEqual(len(secrets.pop()), 32)

    def test_certificates(self):
        for kind in KINDS:
            key, certificate = self.key(kind, True), self.path("certificate.pem")
            self.openssl("req", "-x509", "-config", self.config(), "-key", key, "-subj", "/CN=a",
                         "-out", certificate)
            for ours in (True, False):
                with self.subTest(kind=kind, ours=ours):
                    self.openssl("verify", "-auth_level", "0", "-CAfile", certificate, certificate, ours=ours)

    def config(self):
        with open(self.path("req.cnf"), "w", encoding="ascii") as file:
            file.write("[req]\ndistinguished_name=dn\nx509_extensions=ca\n[dn]\n[ca]\nbasicConstraints=CA:TRUE\n")
        return self.path("req.cnf")

    def speed(self, *args):
        done = self.openssl("speed", "-seconds", "1", *args, "rsa2048")
        found = re.search(rb"rsa 2048 bits\s+\S+s\s+\S+s\s+([0-9.]+)", done.stdout)
        self.assertIsNotNone(found, done.stdout)
        return float(found.group(1))

    def test_speed_with_jobs(self):
        """Eight jobs fill eight lanes; without lanes they are at least no slower by much."""
        one, eight = self.speed(), self.speed("-async_jobs", "8")
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            has_lanes = "avx512ifma" in file.read()
        self.assertGreater(eight, one * (1.3 if has_lanes else 0.5))


if __name__ == "__main__":
    unittest.main()
