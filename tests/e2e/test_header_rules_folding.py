"""
The three header rules that are known to cost HAProxy 14 % on a listener where they never apply: their
values are HAProxy's, on a TLS listener, on a plain one, and on one frontend with both.
"""

import re
import unittest

from harness import LIMITS, Authority, Case, curl, serve_hello

RULES = """
    http-request add-header X-Cipher-Name %sslc@if@
    http-request add-header X-Cipher-Version %sslv@if@
    http-request add-header X-Cipher-Bits %[ssl_fc_use_keysize]@if@
"""

CONFIG = """
global
    ssl-default-bind-ciphersuites TLS_AES_256_GCM_SHA384
defaults
    mode http
""" + LIMITS + """
frontend plain
    bind 127.0.0.1:@plain@
""" + RULES.replace("@if@", "") + """
    default_backend app
frontend tls
    bind 127.0.0.1:@tls@ ssl crt @dir@/certs/web.pem
""" + RULES.replace("@if@", "") + """
    default_backend app
frontend both
    bind 127.0.0.1:@bothplain@
    bind 127.0.0.1:@bothtls@ ssl crt @dir@/certs/web.pem
    acl https_traffic ssl_fc
""" + RULES.replace("@if@", " if https_traffic") + """
    http-request set-header X-Secure %[ssl_fc,iif(yes,no)]
    http-request deny if { ssl_fc_protocol TLSv1.0 }
    use_backend app if { ssl_fc } or { dst_port gt 0 }
backend app
    http-request set-header X-Backend-Saw %[ssl_fc_protocol]
    server s1 127.0.0.1:@server@
"""


class Folding(Case):
    def setUp(self):
        super().setUp()
        Authority(self.path("certs")).issue("web.pem", "localhost", ["127.0.0.1"])
        self.backend = self.server(serve_hello)
        self.lb = self.proxy(CONFIG, server=self.backend.port)

    def headers(self, port, scheme, *options):
        """The fields beginning with X- that the server got, in order."""
        self.backend.requests.clear()
        self.assertEqual(curl("-k", *options, self.lb.url(port, scheme=scheme)), "hello\n")
        head = self.backend.requests[0][0].decode()
        return dict(re.findall(r"(?im)^(x-[\w-]+): ?(.*?)\r?$", head.lower()))

    def test_plain(self):
        """Without TLS: the fields are there, and empty. (A log line would have "-".)"""
        fields = self.headers("plain", "http")
        self.assertEqual(fields["x-cipher-name"], "")
        self.assertEqual(fields["x-cipher-version"], "")
        self.assertEqual(fields["x-cipher-bits"], "")

    def test_tls(self):
        fields = self.headers("tls", "https")
        self.assertEqual(fields["x-cipher-name"], "tls_aes_256_gcm_sha384")
        self.assertEqual(fields["x-cipher-version"], "tlsv1.3")
        self.assertEqual(fields["x-cipher-bits"], "256")
        self.assertEqual(fields["x-backend-saw"], "tlsv1.3")
        fields = self.headers("tls", "https", "--tls-max", "1.2", "--ciphers", "ECDHE-ECDSA-AES128-GCM-SHA256")
        self.assertEqual(fields["x-cipher-name"], "ecdhe-ecdsa-aes128-gcm-sha256")
        self.assertEqual(fields["x-cipher-version"], "tlsv1.2")
        self.assertEqual(fields["x-cipher-bits"], "128")

    def test_conditioned(self):
        fields = self.headers("bothplain", "http")
        for name in ("x-cipher-name", "x-cipher-version", "x-cipher-bits"):
            self.assertNotIn(name, fields)
        self.assertEqual(fields["x-secure"], "no")
        self.assertEqual(fields["x-backend-saw"], "")
        fields = self.headers("bothtls", "https")
        self.assertEqual(fields["x-cipher-bits"], "256")
        self.assertEqual(fields["x-secure"], "yes")


if __name__ == "__main__":
    unittest.main()
