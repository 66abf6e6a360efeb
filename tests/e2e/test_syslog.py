"""Log targets: UDP and Unix sockets, files; formats, levels, lengths, sampling of what is written."""

import re
import socket
import unittest

from harness import LIMITS, Case, curl, serve_hello

CONFIG = """
global
    @global@
defaults
    mode http
    log global
    option httplog
""" + LIMITS + """
frontend web
    bind 127.0.0.1:@web@
    @frontend@
    http-request return status 200 content-type text/plain string ok if { path /ok }
    http-request deny if { path /denied }
    default_backend app
backend app
    server s1 127.0.0.1:@server@
"""

HTTP_LINE = (r"127\.0\.0\.1:\d+ \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d\.\d{3}\] web web/<NOSRV> "
             r"-?\d+/-1/-1/-1/\d+ 200 \d+ - - LR-- \d+/\d+/\d+/\d+/0 0/0 \"GET /ok HTTP/1\.1\"")


class Syslog(Case):
    def receiver(self, path=None):
        kind = socket.AF_UNIX if path else socket.AF_INET
        sock = socket.socket(kind, socket.SOCK_DGRAM)
        sock.bind(path or ("127.0.0.1", 0))
        sock.settimeout(10)
        self.addCleanup(sock.close)
        return sock

    def start(self, lines="", frontend="", name="proxy"):
        server = self.server(serve_hello)
        return self.proxy(CONFIG, server=server.port, frontend=frontend, name=name,
                          **{"global": lines})

    def message(self, sock, pattern):
        """The first datagram that matches, as text."""
        for _ in range(20):
            text = sock.recv(65536).decode("utf-8", "replace")
            if re.search(pattern, text):
                return text
        raise AssertionError("no datagram matched " + pattern)

    def test_formats_over_udp(self):
        formats = {
            "": r"^<134>\w{3} [ \d]\d \d\d:\d\d:\d\d (\S+ )?\S+\[(\d+)\]: " + HTTP_LINE + r"\n?$",
            "format rfc3164": r"^<134>\w{3} [ \d]\d \d\d:\d\d:\d\d \S+ \S+\[\d+\]: " + HTTP_LINE + r"\n?$",
            "format rfc5424": (r"^<134>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-]\d\d:\d\d \S+ \S+ \d+ - - "
                               + HTTP_LINE + r"\n?$"),
            "format raw": "^" + HTTP_LINE + r"\n?$",
            "format short": "^<6>" + HTTP_LINE + r"\n?$",
            "format timed": r"^<6>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-]\d\d:\d\d " + HTTP_LINE + r"\n?$",
            "format iso": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?[+-]\d\d:\d\d " + HTTP_LINE + r"\n?$",
        }
        sockets = {name: self.receiver() for name in formats}
        lines = "\n    ".join("log 127.0.0.1:%d %s local0" % (sock.getsockname()[1], name)
                              for name, sock in sockets.items())
        proxy = self.start(lines)
        curl(proxy.url("web", "/ok"))
        for name, pattern in formats.items():
            with self.subTest(name):
                text = self.message(sockets[name], "GET /ok")
                self.assertRegex(text, pattern)
                if not name:
                    self.assertIn("[%d]: " % proxy.pid, text)

    def test_unix_socket(self):
        path = self.path("log.sock")
        receiver = self.receiver(path)
        proxy = self.start("log %s local3 info" % path)
        curl(proxy.url("web", "/ok"))
        self.assertRegex(self.message(receiver, "GET /ok"), "^<158>")

    def test_host_and_tag(self):
        receiver = self.receiver()
        proxy = self.start("log 127.0.0.1:%d local0\n    log-send-hostname my.host\n    log-tag mytag"
                           % receiver.getsockname()[1])
        curl(proxy.url("web", "/ok"))
        self.assertRegex(self.message(receiver, "GET /ok"), r" my\.host mytag\[\d+\]: ")

    def test_levels(self):
        """A target gets what is at least as urgent as its level; a minimum lowers the urgency."""
        everything, urgent, lowered = self.receiver(), self.receiver(), self.receiver()
        server = self.server(serve_hello)
        proxy = self.proxy("""
global
    log 127.0.0.1:@all@ local0
    log 127.0.0.1:@urgent@ local0 err
    log 127.0.0.1:@lowered@ local0 debug warning
defaults
    mode http
    log global
    option httplog
    option log-separate-errors
%s
frontend web
    bind 127.0.0.1:@web@
    http-request return status 200 if { path /ok }
    http-request deny if { path /denied }
    default_backend app
backend app
    server s1 127.0.0.1:@server@
    server dead 127.0.0.1:1 backup check inter 200ms fall 1
""" % LIMITS, all=everything.getsockname()[1], urgent=urgent.getsockname()[1],
                           lowered=lowered.getsockname()[1], server=server.port)
        self.assertRegex(self.message(urgent, "dead is DOWN"), "^<129>")
        self.assertRegex(self.message(lowered, "dead is DOWN"), "^<132>")
        self.message(everything, "dead is DOWN")
        curl(proxy.url("web", "/ok"))
        curl(proxy.url("web", "/denied"))
        self.assertRegex(self.message(everything, "GET /ok"), "^<134>")
        self.assertRegex(self.message(everything, "GET /denied"), "^<131>")
        self.assertRegex(self.message(urgent, "GET"), "^<131>.*GET /denied")

    def test_length(self):
        receiver = self.receiver()
        proxy = self.start("log 127.0.0.1:%d len 200 local0" % receiver.getsockname()[1],
                           "capture request header X-Long len 500")
        curl("-H", "X-Long: " + "y" * 400, proxy.url("web", "/ok"))
        self.assertLessEqual(len(self.message(receiver, "yyy").rstrip("\n")), 200)

    def test_stdout_stderr_and_two_targets(self):
        receiver = self.receiver()
        proxy = self.start("log stdout format raw local0\n    log stderr format short local1 info\n"
                           "    log 127.0.0.1:%d local0" % receiver.getsockname()[1])
        curl(proxy.url("web", "/ok"))
        self.message(receiver, "GET /ok")
        proxy.wait_output("^" + HTTP_LINE + "$")
        proxy.wait_output("^<6>" + HTTP_LINE + "$")

    def test_no_log_and_own_target(self):
        """`no log` silences a proxy; a log line of its own replaces the global ones."""
        common, own = self.receiver(), self.receiver()
        proxy = self.proxy("""
global
    log 127.0.0.1:@common@ local0
defaults
    mode http
    option httplog
%s
frontend silent
    bind 127.0.0.1:@silent@
    http-request return status 200
frontend own
    bind 127.0.0.1:@own@
    log 127.0.0.1:@ownlog@ local1
    http-request return status 200
frontend both
    bind 127.0.0.1:@both@
    log global
    http-request return status 200
""" % LIMITS, common=common.getsockname()[1], ownlog=own.getsockname()[1])
        for name in ("silent", "own", "both"):
            curl(proxy.url(name, "/" + name))
        self.assertIn("GET /own", self.message(own, "GET"))
        self.assertIn("GET /both", self.message(common, "GET"))

    def test_a_receiver_that_is_away_hinders_nobody(self):
        receiver = self.receiver()
        port = receiver.getsockname()[1]
        receiver.close()
        proxy = self.start("log 127.0.0.1:%d local0\n    log %s local0" % (port, self.path("nobody.sock")))
        for _ in range(20):
            self.assertEqual(curl(proxy.url("web", "/ok")), "ok")

    def test_hostile_bytes_cannot_forge_lines(self):
        """Line ends, control bytes and quotes that clients send are escaped."""
        receiver = self.receiver()
        proxy = self.start("log 127.0.0.1:%d format raw local0" % receiver.getsockname()[1],
                           "capture request header X-Evil len 100")
        proxy.raw("web", b"GET /ok HTTP/1.1\r\nHost: a\r\nX-Evil: a\xff\tb|{}c\"\r\nConnection: close\r\n\r\n")
        text = receiver.recv(65536)
        self.assertIn(b"{a#FF#09b#7C#7B#7Dc#22}", text)
        # What does not even parse is not shown at all.
        proxy.raw("web", b"GET /ok\r\n<0>forged\x1b[31m HTTP/1.1\r\nHost: a\r\n\r\n")
        text = b""
        while b"BADREQ" not in text:
            text = receiver.recv(65536)
            self.assertEqual(text.rstrip(b"\n").count(b"\n"), 0)
            self.assertNotIn(b"\x1b", text)
            self.assertNotIn(b"forged", text)

    def test_every_request_once(self):
        receiver = self.receiver()
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        proxy = self.start("log 127.0.0.1:%d format raw local0" % receiver.getsockname()[1])
        urls = [proxy.url("web", "/ok?n=%d" % number) for number in range(200)]
        curl("-o", "/dev/null", *sum((["-o", "/dev/null", url] for url in urls), [])[2:], urls[0])
        seen = []
        while len(seen) < 201:
            found = re.search(r"GET /ok\?n=(\d+)", receiver.recv(65536).decode())
            if found:
                seen.append(int(found.group(1)))
        self.assertEqual(sorted(seen), sorted(list(range(200)) + [0]))


if __name__ == "__main__":
    unittest.main()
