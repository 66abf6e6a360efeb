"""Compression, checked by decompressing with Python and curl."""

import gzip
import threading
import unittest
import zlib

from harness import LIMITS, Authority, Case, Connection, curl, ours_alone, unverified_context

CONFIG = """
defaults
    mode http
""" + LIMITS + """
frontend web
    bind 127.0.0.1:@web@
    bind 127.0.0.1:@tls@ ssl crt @dir@/certs/web.pem
    compression algo gzip deflate
    compression type text/html text/plain application/json
    default_backend app
backend app
    server s1 127.0.0.1:@server@
"""

TEXT = b"".join(b"line %d of a text that repeats itself\n" % number for number in range(20000))


def inflate(body, coding):
    if coding == "gzip":
        return gzip.decompress(body)
    return zlib.decompress(body)


class Compression(Case):
    def start(self, answers, config=CONFIG):
        """answers: path to (extra head, body, chunked)"""
        def handler(connection):
            while True:
                head, _ = connection.request()
                extra, body, chunked = answers[head.split(b" ")[1].decode()]
                if not chunked:
                    connection.answer(body, head=extra)
                    continue
                connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + extra + b"\r\n")
                for start in range(0, len(body), 1000):
                    part = body[start:start + 1000]
                    connection.send(b"%x\r\n%s\r\n" % (len(part), part))
                connection.send(b"0\r\n\r\n")

        Authority(self.path("certs")).issue("web.pem", "localhost", ["127.0.0.1"])
        return self.proxy(config, server=self.server(handler).port)

    def get(self, proxy, path, accept, tls=False):
        sock = proxy.connect("tls" if tls else "web")
        if tls:
            sock = unverified_context().wrap_socket(sock)
        with sock:
            client = Connection(sock)
            client.send(b"GET %s HTTP/1.1\r\nHost: a\r\nAccept-Encoding: %s\r\n\r\n" % (path.encode(), accept.encode()))
            return client.response()

    def test_bodies_of_all_sizes(self):
        sizes = (1, 100, 1000, 16384, 16385, 65536, len(TEXT))
        answers = {}
        for size in sizes:
            for chunked in (False, True):
                answers["/%d-%d" % (size, chunked)] = (b"Content-Type: text/plain\r\n", TEXT[:size], chunked)
        proxy = self.start(answers)
        for path, (_, body, _) in answers.items():
            for coding in ("gzip", "deflate"):
                for tls in (False, True):
                    with self.subTest(path=path, coding=coding, tls=tls):
                        status, fields, got = self.get(proxy, path, coding, tls)
                        self.assertEqual(status, 200)
                        self.assertEqual(fields["content-encoding"], coding)
                        self.assertEqual(fields["vary"].lower(), "accept-encoding")
                        self.assertNotIn("content-length", fields)
                        self.assertEqual(inflate(got, coding), body)
                        if len(body) > 10000:
                            self.assertLess(len(got), len(body) // 3)

    def test_curl_understands(self):
        proxy = self.start({"/": (b"Content-Type: text/html; charset=utf-8\r\n", TEXT, True)})
        for _ in range(3):
            self.assertEqual(curl("--compressed", proxy.url("web"), text=False), TEXT)
        out = curl("--compressed", "-o", "/dev/null", "-w", "%{size_download}", proxy.url("web"))
        self.assertLess(int(out), len(TEXT) // 3)

    def test_left_alone(self):
        body = TEXT[:5000]
        html = b"Content-Type: text/html\r\n"
        proxy = self.start({
            "/image": (b"Content-Type: image/png\r\n", body, False),
            "/none": (b"", body, False),
            "/encoded": (html + b"Content-Encoding: br\r\n", body, False),
            "/no-transform": (html + b"Cache-Control: no-transform\r\n", body, False),
            "/multipart": (b"Content-Type: multipart/mixed; boundary=x\r\n", body, False),
            "/plain": (html, body, False),
        })
        for path in ("/image", "/none", "/no-transform", "/multipart"):
            with self.subTest(path):
                _, fields, got = self.get(proxy, path, "gzip")
                self.assertNotIn("content-encoding", fields)
                self.assertEqual(fields["content-length"], "5000")
                self.assertEqual(got, body)
        self.assertEqual(self.get(proxy, "/encoded", "gzip")[1]["content-encoding"], "br")
        for accept in ("identity", "br", "gzip;q=0", ""):
            self.assertNotIn("content-encoding", self.get(proxy, "/plain", accept)[1])

    @ours_alone
    def test_small_pieces_are_not_held_back(self):
        """HAProxy 2.6 holds them. What a server sends slowly comes out before its end, compressed or not."""
        def handler(connection):
            connection.request()
            connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n")
            connection.send(b"5\r\nfirst\r\n")
            connection.server.may_end.wait(10)
            connection.send(b"0\r\n\r\n")

        server = self.server(handler)
        server.may_end = threading.Event()
        Authority(self.path("certs")).issue("web.pem", "localhost", ["127.0.0.1"])
        proxy = self.proxy(CONFIG, server=server.port)
        with proxy.connect("web") as sock:
            client = Connection(sock)
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
            client.head()
            decoder = zlib.decompressobj(31)
            text = b""
            while text != b"first":
                size = int(client.until(b"\r\n"), 16)
                text += decoder.decompress(client.exactly(size))
                client.exactly(2)
            server.may_end.set()
            client.until(b"0\r\n\r\n")


if __name__ == "__main__":
    unittest.main()
