"""ab and wrk against the load balancer: no failed request, exact counts, on every kind of connection."""

import re
import subprocess
import unittest

from harness import LIMITS, Authority, Case, curl, is_sanitized, require, run

CONFIG = """
global
    maxconn 4000
defaults
    mode http
    retries 3
    option redispatch
""" + LIMITS + """
frontend web
    bind 127.0.0.1:@web@
    bind 127.0.0.1:@tls@ ssl crt @dir@/certs/web.pem
    stats enable
    stats uri /stats
    default_backend app
frontend closing
    bind 127.0.0.1:@closing@
    option httpclose
    default_backend app
backend app
    balance roundrobin
    server s1 127.0.0.1:@one@ maxconn 400
    server s2 127.0.0.1:@two@ maxconn 400
"""


class Load(Case):
    def setUp(self):
        super().setUp()
        require("ab", "wrk")
        self.scale = 0.25 if is_sanitized() else 1
        first, second = self.nginx(), self.nginx()
        for server in (first, second):
            server.file("small", b"x" * 612)
            server.file("large", b"y" * 65536)
        Authority(self.path("certs")).issue("web.pem", "localhost", ["127.0.0.1"], key="rsa")
        self.lb = self.proxy(CONFIG, one=first.port, two=second.port)

    def ab(self, requests, clients, url, *options):
        requests = int(requests * self.scale)
        out = run("ab", "-q", "-n", str(requests), "-c", str(clients), *options, url, seconds=120)
        self.assertRegex(out, r"Complete requests: +%d\b" % requests)
        self.assertRegex(out, r"Failed requests: +0\b", out)
        self.assertNotIn("Non-2xx", out)
        return requests

    def wrk(self, seconds, connections, url, *options):
        """(requests, output); any error is a failure."""
        done = subprocess.run(
            ["wrk", "-t", "1", "-c", str(connections), "-d", "%ds" % seconds, *options, url],
            capture_output=True, text=True, check=False, timeout=60,
        )
        out = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, out)
        self.assertNotIn("Socket errors", out)
        self.assertNotIn("Non-2xx", out)
        requests = int(re.search(r"(\d+) requests in", out).group(1))
        self.assertGreater(requests, 50, out)
        return requests

    def totals(self):
        """Requests that each server has got, and those of the backend, as the statistics say."""
        rows = curl(self.lb.url("web", "/stats;csv")).splitlines()
        names = rows[0].lstrip("# ").split(",")
        table = [dict(zip(names, row.split(","))) for row in rows[1:] if row]
        return {row["svname"]: int(row["stot"]) for row in table if row["pxname"] == "app"}

    def test_ab_counts_are_exact(self):
        """Every request is counted once, and the two servers share them equally."""
        sent = 0
        for options in ((), ("-k",)):
            for port, scheme in (("web", "http"), ("tls", "https"), ("closing", "http")):
                url = self.lb.url(port, "/small", scheme)
                count = 1500 if scheme == "https" and not options else 4000
                sent += self.ab(count, 20, url, *options)
        totals = self.totals()
        self.assertEqual(totals["BACKEND"], sent)
        self.assertEqual(totals["s1"] + totals["s2"], sent)
        self.assertLessEqual(abs(totals["s1"] - totals["s2"]), sent // 20 + 50)

    def test_ab_tls12_full_handshakes(self):
        self.ab(800, 20, self.lb.url("tls", "/small", "https"), "-f", "TLS1.2", "-Z", "ECDHE-RSA-AES256-GCM-SHA384")

    def test_ab_posts(self):
        body = self.write("body", b"z" * 20000)
        self.ab(2000, 20, self.lb.url("web", "/posted"), "-k", "-p", body, "-T", "text/plain")

    def test_built_in_origins(self):
        """`sallyport origin` behind, as in the demonstration: bodies of 64 bytes and of 8 KiB."""
        small, large = self.origin("--size", "64"), self.origin("--size", "8192")
        proxy = self.proxy(CONFIG, one=small.port, two=large.port, name="origins")
        sizes = {len(curl(proxy.url("web"))) for _ in range(4)}
        self.assertEqual(sizes, {64, 8192})
        self.ab(2000, 20, proxy.url("web"), "-k", "-l")

    def test_wrk(self):
        for port, scheme, path in (("web", "http", "/small"), ("web", "http", "/large"),
                                   ("tls", "https", "/small"), ("tls", "https", "/large")):
            with self.subTest(port=port, path=path):
                self.wrk(1, 64, self.lb.url(port, path, scheme))

    def test_wrk_more_clients_than_the_servers_take(self):
        """1,000 connections over 800 places: the rest waits in the queues, nobody gets an error."""
        self.wrk(2, 1000, self.lb.url("web", "/small"), "--timeout", "20s")

    def test_wrk_pipelined(self):
        script = self.write("pipeline.lua", """
init = function(args)
    local r = {}
    for i = 1, 8 do r[i] = wrk.format("GET", "/small") end
    req = table.concat(r)
end
request = function() return req end
""")
        self.wrk(1, 16, self.lb.url("web"), "-s", script)

    def test_wrk_connection_a_request(self):
        self.wrk(1, 16, self.lb.url("web", "/small"), "-H", "Connection: close")


if __name__ == "__main__":
    unittest.main()
