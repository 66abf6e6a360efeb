"""
The configuration of the published accelerator-card measurement, unmodified but for the path of the
certificate and the port numbers: a machine without the card runs it, and says loudly what it runs instead.
"""

import re
import unittest

from harness import Authority, Case, curl, ours_alone

SEED = """
global
    tune.ssl.default-dh-param 2048
    maxconn 100000
    ssl-engine qat algo RSA
    ssl-mode-async
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend myfrontend
    bind *:@http@
    bind *:@https@ ssl crt @dir@/certs/server.pem
    default_backend mybackend
backend mybackend
    balance roundrobin
    mode http
    server myserver1 127.0.0.1:@origin@ check
"""

STATS = """
listen stats
    bind 127.0.0.1:@stats@
    stats enable
    stats uri /
"""


@ours_alone
class Seed(Case):
    """Debian's HAProxy refuses to start without the engine."""

    def start(self, extra=""):
        origin = self.nginx()
        origin.file("document", b"d" * 612)
        authority = Authority(self.path("certs"))
        authority.issue("server.pem", "localhost", ["127.0.0.1"], key="rsa")
        self.ca = authority.ca
        return self.proxy(SEED + extra, origin=origin.port)

    def test_serves_both(self):
        proxy = self.start()
        self.assertEqual(curl(proxy.url("http", "/document")), "d" * 612)
        out = curl("--cacert", self.ca, "--tls-max", "1.2", "--ciphers", "ECDHE-RSA-AES256-GCM-SHA384", "-v",
                   proxy.url("https", "/document", "https"), check=False)
        self.assertEqual(out.stdout, "d" * 612)
        self.assertIn("TLSv1.2 / ECDHE-RSA-AES256-GCM-SHA384", out.stderr)
        for _ in range(5):
            self.assertEqual(curl("-k", proxy.url("https", "/document", "https")), "d" * 612)

    def test_warns_about_the_engine(self):
        """The warning names file and line, the engine, and what runs instead."""
        proxy = self.start()
        warnings = [line for line in proxy.output().splitlines() if "warning" in line and "qat" in line]
        self.assertEqual(len(warnings), 1, proxy.output())
        self.assertIn(proxy.config_path + ":5:", warnings[0])
        self.assertRegex(warnings[0], "(?i)openssl|multibuffer|software")

    def test_statistics_show_it(self):
        proxy = self.start(STATS)
        page = curl(proxy.url("stats"))
        self.assertIn("qat", page)
        text = re.sub(r"<[^>]*>", " ", page)
        self.assertRegex(text, r"(?is)qat.{0,300}(openssl|multibuffer|software)")


if __name__ == "__main__":
    unittest.main()
