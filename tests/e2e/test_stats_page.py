"""The statistics page: numbers that are right, CSV that tools can read, nobody let in who may not."""

import csv
import io
import re
import unittest

from harness import LIMITS, Case, curl, serve_hello, wait_until

CONFIG = """
global
    description the <machine>
    node node-one
defaults
    mode http
""" + LIMITS + """
frontend web
    bind 127.0.0.1:@web@
    http-request deny if { path /denied }
    default_backend app
backend app
    balance roundrobin
    server good 127.0.0.1:@server@ check inter 100ms weight 10
    server away 127.0.0.1:1 check inter 100ms fall 1
    server spare 127.0.0.1:@server@ backup
    server off 127.0.0.1:1 disabled
listen admin
    bind 127.0.0.1:@stats@
    stats enable
    stats uri /page
    stats refresh 3s
    stats realm Sallyport\\ "Statistics"
    stats auth admin:se:cret
    stats auth other:two
"""


class Statistics(Case):
    def setUp(self):
        super().setUp()
        server = self.server(serve_hello)
        self.lb = self.proxy(CONFIG, server=server.port)

    def page(self, path="/page", user="admin:se:cret"):
        return curl("-u", user, self.lb.url("stats", path))

    def rows(self):
        text = self.page("/page;csv")
        self.assertTrue(text.startswith("# pxname,svname,"), text[:200])
        reader = csv.DictReader(io.StringIO(text[2:]))
        return {(row["pxname"], row["svname"]): row for row in reader}

    def test_counts(self):
        wait_until(lambda: self.rows()[("app", "away")]["status"].startswith("DOWN"), "the check of a dead server")
        for _ in range(7):
            curl(self.lb.url("web"))
        for _ in range(2):
            curl(self.lb.url("web", "/denied"))
        wait_until(lambda: self.rows()[("web", "FRONTEND")]["hrsp_2xx"] == "7", "seven answers counted")
        rows = self.rows()
        web = rows[("web", "FRONTEND")]
        self.assertEqual(web["req_tot"], "9")
        self.assertEqual(web["hrsp_4xx"], "2")
        self.assertEqual(web["dreq"], "2")
        self.assertEqual(web["status"], "OPEN")
        self.assertGreater(int(web["bin"]), 9 * 20)
        self.assertGreater(int(web["bout"]), 9 * 40)
        good = rows[("app", "good")]
        self.assertEqual(good["stot"], "7")
        self.assertEqual(good["hrsp_2xx"], "7")
        self.assertEqual(good["weight"], "10")
        self.assertTrue(good["status"].startswith("UP"), good["status"])
        self.assertEqual(good["check_status"], "L4OK")
        self.assertEqual(rows[("app", "away")]["check_status"], "L4CON")
        self.assertEqual(rows[("app", "spare")]["bck"], "1")
        self.assertTrue(rows[("app", "off")]["status"].startswith("MAINT"))
        self.assertEqual(rows[("app", "BACKEND")]["stot"], "7")
        self.assertEqual(rows[("app", "BACKEND")]["act"], "1")

    def test_page(self):
        text = self.page()
        for word in ("web", "app", "good", "away", "spare", "off", "admin"):
            self.assertIn(word, text)
        self.assertNotIn("<machine>", text)  # what the configuration says is text, not markup
        head = curl("-u", "admin:se:cret", "-i", "-o", "-", self.lb.url("stats", "/page"))
        self.assertRegex(head, r"(?im)^refresh: 3\s*$")
        self.assertRegex(head, r"(?im)^content-type: text/html")
        self.assertRegex(head, r"(?im)^cache-control: no-cache")

    def test_authentication(self):
        url = self.lb.url("stats", "/page")
        code = ("-o", "/dev/null", "-w", "%{http_code}")
        self.assertEqual(curl(*code, url), "401")
        for user, expected in (("admin:se:cret", "200"), ("other:two", "200"), ("admin:two", "401"),
                               ("admin:", "401"), (":se:cret", "401"), ("admin:se:cretx", "401")):
            self.assertEqual(curl(*code, "-u", user, url), expected, user)
        for value in ("Basic", "Basic !!!", "Bearer x", "Basic YWRtaW4="):
            self.assertEqual(curl(*code, "-H", "Authorization: " + value, url), "401")
        out = curl("-i", url)
        self.assertRegex(out, r'(?im)^www-authenticate: Basic realm="Sallyport')

    def test_only_where_it_is(self):
        code = ("-o", "/dev/null", "-w", "%{http_code}", "-u", "admin:se:cret")
        self.assertEqual(curl(*code, self.lb.url("stats", "/")), "503")
        self.assertEqual(curl(*code, self.lb.url("web", "/page")), "200")  # the server's own answer
        self.assertRegex(curl("-u", "admin:se:cret", self.lb.url("web", "/page")), "^hello$")

    def test_head(self):
        out = curl("-u", "admin:se:cret", "-I", self.lb.url("stats", "/page"))
        self.assertRegex(out, r"^HTTP/1\.[01] 200")
        self.assertFalse(re.search("<html", out))


if __name__ == "__main__":
    unittest.main()
