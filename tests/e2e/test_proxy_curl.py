"""curl through the load balancer to a real nginx: methods, sizes, framings, ranges, limits."""

import hashlib
import os
import re
import threading
import unittest

from harness import LIMITS, Authority, Case, Connection, curl, serve_hello, status_of

CONFIG = """
defaults
    mode http
    option forwardfor
    log stdout format raw local0
    option httplog
""" + LIMITS + """
frontend web
    bind 127.0.0.1:@web@
    bind 127.0.0.1:@tls@ ssl crt @dir@/certs/web.pem
    default_backend app
backend app
    server s1 127.0.0.1:@origin@
"""

SIZES = (0, 1, 16384, 65536, 10 << 20)


class ThroughToNginx(Case):
    def setUp(self):
        super().setUp()
        self.origin = self.nginx()
        Authority(self.path("certs")).issue("web.pem", "localhost", ["127.0.0.1"])
        self.lb = self.proxy(CONFIG, origin=self.origin.port)
        self.urls = [self.lb.url("web"), self.lb.url("tls", scheme="https")]

    def test_get_of_every_size(self):
        for size in SIZES:
            content = os.urandom(size)
            self.origin.file("f%d" % size, content)
            for url in self.urls:
                with self.subTest(size=size, url=url):
                    self.assertEqual(curl("-k", url + "f%d" % size, text=False), content)

    def test_put_of_every_size(self):
        """With a length, and in chunks (from a pipe curl does not know the length)."""
        for size in SIZES:
            content = os.urandom(size)
            source = self.write("source", content)
            for number, url in enumerate(self.urls):
                for chunked in (False, True) if size else (False,):  # curl itself fails at no byte in chunks
                    with self.subTest(size=size, url=url, chunked=chunked):
                        name = "up%d-%d-%d" % (size, number, chunked)
                        options = ["-H", "Transfer-Encoding: chunked"] if chunked else []
                        out = curl("-k", *options, "-T", source, "-w", "%{http_code}", url + name)
                        self.assertRegex(out, "20[14]$")
                        self.assertEqual(self.origin.stored(name), content)

    def test_post_and_other_methods(self):
        for url in self.urls:
            self.assertEqual(curl("-k", "-d", "a=b", url), "posted\n")
            self.assertEqual(curl("-k", "-d", "@" + self.write("form", b"x" * 300000), url), "posted\n")
            self.origin.file("doomed", b"x")
            self.assertEqual(curl("-k", "-X", "DELETE", "-w", "%{http_code}", url + "doomed"), "204")
            self.assertIn("HTTP/1.1 200", curl("-k", "-I", url + "hello"))
            out = curl("-k", "-X", "OPTIONS", "-o", "/dev/null", "-w", "%{http_code}", url)
            self.assertEqual(out, "405")  # what nginx says to it

    def test_statuses_pass(self):
        for path, code in (("status/204", "204"), ("status/301", "301"), ("status/500", "500"), ("none", "404")):
            out = curl("-o", "/dev/null", "-w", "%{http_code}", self.urls[0] + path)
            self.assertEqual(out, code)
        self.assertEqual(curl("-L", self.urls[0] + "hello"), "hello\n")

    def test_ranges_and_conditions(self):
        content = os.urandom(100000)
        self.origin.file("ranged", content)
        url = self.urls[1] + "ranged"
        self.assertEqual(curl("-k", "-r", "10-19", url, text=False), content[10:20])
        self.assertEqual(curl("-k", "-r", "-5", url, text=False), content[-5:])
        parts = curl("-k", "-r", "0-9,50-59", url, text=False)
        self.assertIn(content[50:60], parts)
        out = curl("-k", "-r", "200000-", "-o", "/dev/null", "-w", "%{http_code}", url)
        self.assertEqual(out, "416")
        tag = re.search(r"(?im)^etag: (.*)$", curl("-k", "-I", url)).group(1)
        out = curl("-k", "-H", "If-None-Match: " + tag, "-o", "/dev/null", "-w", "%{http_code}", url)
        self.assertEqual(out, "304")

    def test_head_has_no_body(self):
        self.origin.file("f", b"x" * 5000)
        for url in self.urls:
            out = curl("-k", "-I", url + "f", url + "hello", "-w", "%{num_connects} ")
            self.assertIn("Content-Length: 5000", out.replace("content-length", "Content-Length"))
            # The second went over the same connection: nothing was left in it.
            self.assertRegex(out, r"1 [\s\S]*0 $")

    def test_many_urls_over_one_connection(self):
        self.origin.file("f", b"content")
        for url in self.urls:
            out = curl("-k", "-w", " %{num_connects}\n", *[url + "f"] * 50)
            self.assertEqual(out, "content 1\n" + "content 0\n" * 49)

    def test_expect_100(self):
        """curl waits for the interim answer: with a long wait, only a proxy that relays it is fast."""
        content = os.urandom(3 << 20)
        source = self.write("source", content)
        for number, url in enumerate(self.urls):
            out = curl("-k", "-H", "Expect: 100-continue", "--expect100-timeout", "20", "-T", source,
                       "-w", "%{http_code} %{time_total}", url + "expected%d" % number)
            self.assertRegex(out, "^20[14] [0-9]\\.")
            self.assertEqual(self.origin.stored("expected%d" % number), content)

    def test_large_heads(self):
        """Up to the buffer all is well; above it the answer is an error and not a broken connection."""
        for url in self.urls:
            out = curl("-k", "-H", "X-Large: " + "a" * 7000, "-o", "/dev/null", "-w", "%{http_code}", url + "hello")
            self.assertEqual(out, "200")
            out = curl("-k", "-H", "X-Large: " + "a" * 17500, "-o", "/dev/null", "-w", "%{http_code}",
                       url + "hello")
            self.assertIn(out, ("400", "431"))
        many = b"".join(b"X-%d: y\r\n" % i for i in range(200))
        data = self.lb.raw("web", b"GET /hello HTTP/1.1\r\nHost: a\r\n" + many + b"\r\n")
        self.assertIn(status_of(data), (400, 431))
        long_target = b"GET /" + b"a" * 17500 + b" HTTP/1.1\r\nHost: a\r\n\r\n"
        self.assertIn(status_of(self.lb.raw("web", long_target)), (400, 414, 431))

    def test_http10_client(self):
        out = curl("-0", "-i", self.urls[0] + "hello")
        self.assertIn("hello\n", out)
        self.assertNotIn("chunked", out)

    def test_two_directions_at_once(self):
        """Several uploads and downloads side by side stay apart."""
        for i in range(4):
            self.origin.file("d%d" % i, os.urandom(1 << 20))
            self.write("u%d" % i, os.urandom(1 << 20))
        arguments = ["-k", "-Z", "--parallel-max", "8"]
        for i in range(4):
            arguments += ["-o", self.path("got%d" % i), self.urls[1] + "d%d" % i, "--next", "-k"]
            arguments += ["-T", self.path("u%d" % i), "-o", "/dev/null", self.urls[0] + "stored%d" % i]
            arguments += ["--next", "-k"] if i < 3 else []
        curl(*arguments)
        for i in range(4):
            with open(self.path("got%d" % i), "rb") as file:
                self.assertEqual(digest(file.read()), digest(self.origin.stored("d%d" % i)))
            with open(self.path("u%d" % i), "rb") as file:
                self.assertEqual(digest(file.read()), digest(self.origin.stored("stored%d" % i)))


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Messages(Case):
    """What needs raw sockets on both sides."""

    config = """
defaults
    mode http
""" + LIMITS + """
listen web
    bind 127.0.0.1:@web@
    http-reuse always
    server s1 127.0.0.1:@server@
"""

    def start(self, handler, **options):
        server = self.server(handler)
        return self.proxy(self.config, server=server.port, **options), server

    def test_trailers_both_ways(self):
        def handler(connection):
            head, body = connection.request()
            connection.server.seen = (head, body, connection.trailers)
            connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
                            b"3\r\nabc\r\n0\r\nX-Sum: 42\r\nX-More: yes\r\n\r\n")
            connection.request()
            connection.answer(b"next")

        proxy, server = self.start(handler)
        with proxy.connect("web") as sock:
            client = Connection(sock)
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n"
                        b"Trailer: X-Check\r\n\r\n5\r\nhello\r\n0\r\nX-Check: 17\r\n\r\n")
            status, _, body = client.response()
            self.assertEqual((status, body), (200, b"abc"))
            self.assertIn(b"x-sum: 42\r\n", client.trailers.lower())
            self.assertIn(b"x-more: yes\r\n", client.trailers.lower())
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(client.response()[2], b"next")
        head, body, trailers = server.seen
        self.assertEqual(body, b"hello")
        self.assertIn(b"x-check: 17\r\n", trailers.lower())
        self.assertIn(b"te: trailers\r\n", head.lower())

    def test_hop_by_hop_fields_do_not_pass(self):
        proxy, server = self.start(serve_hello)
        proxy.raw("web", b"GET / HTTP/1.1\r\nHost: a\r\nKeep-Alive: 5\r\nProxy-Connection: keep-alive\r\n"
                         b"TE: gzip\r\nConnection: close\r\nX-Kept: 1\r\n\r\n")
        head = server.requests[0][0].lower()
        self.assertIn(b"x-kept: 1\r\n", head)
        self.assertNotIn(b"connection: close", head)
        self.assertNotIn(b"te: gzip", head)

    def test_answers_come_as_they_are_made(self):
        """A chunk is passed on when it comes, not when the next one does: streams work."""
        def handler(connection):
            connection.request()
            connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for number in range(5):
                connection.send(b"2\r\n%d\n\r\n" % number)
                connection.server.turn.acquire(timeout=10)
            connection.send(b"0\r\n\r\n")

        proxy, server = self.start(handler)
        server.turn = threading.Semaphore(0)
        with proxy.connect("web") as sock:
            client = Connection(sock)
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            client.head()
            for number in range(5):
                self.assertEqual(client.exactly(7), b"2\r\n%d\n\r\n" % number)
                server.turn.release()
            self.assertEqual(client.exactly(5), b"0\r\n\r\n")

    def test_a_body_comes_as_it_is_sent(self):
        """The server sees each part of a request before the client sends the next."""
        def handler(connection):
            connection.head()
            for _ in range(5):
                connection.exactly(1)
                connection.send(b"HTTP/1.1 102 Processing\r\n\r\n")
            connection.answer(b"done")

        proxy, _ = self.start(handler)
        with proxy.connect("web") as sock:
            client = Connection(sock)
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n")
            for _ in range(5):
                client.send(b"x")
                self.assertIn(b" 102 ", client.head())
            self.assertEqual(client.response()[2], b"done")

    def test_early_answer_to_an_unfinished_request(self):
        """The answer passes at once; what the client does with its body then is its affair."""
        def handler(connection):
            connection.head()
            connection.answer(b"enough", "413 Too Large", b"Connection: close\r\n")

        proxy, _ = self.start(handler)
        with proxy.connect("web") as sock:
            client = Connection(sock)
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 1000)
            status, _, body = client.response()
            self.assertEqual((status, body), (413, b"enough"))

    def test_silent_drop(self):
        """Not a byte for the client; others are served."""
        server = self.server(serve_hello)
        proxy = self.proxy(self.config.replace(
            "    http-reuse", "    http-request silent-drop if { path /x }\n    http-reuse"), server=server.port)
        with proxy.connect("web", 0.5) as sock:
            sock.sendall(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n")
            try:
                self.assertEqual(sock.recv(1), b"")
            except (TimeoutError, ConnectionResetError):
                pass
        self.assertEqual(curl(proxy.url("web")), "hello\n")
        self.assertEqual(len(server.requests), 1)

    def test_websocket_data_in_the_same_packet(self):
        """Bytes that follow the head of an upgrade at once belong to the tunnel, both ways."""
        def handler(connection):
            connection.head()
            connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\nearly")
            data = connection.exactly(5)
            connection.send(b"<" + data + b">")
            connection.sock.recv(1)

        proxy, _ = self.start(handler)
        with proxy.connect("web") as sock:
            client = Connection(sock)
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\nhello")
            self.assertIn(b" 101 ", client.head())
            self.assertEqual(client.exactly(12), b"early<hello>")


if __name__ == "__main__":
    unittest.main()
