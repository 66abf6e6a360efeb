"""Clients and servers that take their time: bounded by the timeouts, and in nobody else's way."""

import threading
import time
import unittest

from harness import Authority, Case, Connection, connect_tls, curl, read_all, serve_hello, status_of

CONFIG = """
defaults
    mode http
    option httplog
    log stdout format raw local0
    timeout connect 2s
    timeout client 2s
    timeout server 1s
    timeout http-request 1s
    timeout http-keep-alive 1s
    timeout tunnel 1s
frontend web
    bind 127.0.0.1:@web@
    bind 127.0.0.1:@tls@ ssl crt @dir@/certs/web.pem
    default_backend app
backend app
    server s1 127.0.0.1:@server@
"""


class Slow(Case):
    def setUp(self):
        super().setUp()
        Authority(self.path("certs")).issue("web.pem", "localhost", ["127.0.0.1"])

    def start(self, handler=serve_hello, config=CONFIG):
        self.backend = self.server(handler)
        return self.proxy(config, server=self.backend.port)

    def drip(self, sock, data, pause):
        """Sends byte by byte until the other side has had enough; what it answers and when."""
        started = time.monotonic()
        sock.settimeout(pause)
        answer = b""
        for byte in data:
            try:
                sock.sendall(bytes([byte]))
                part = sock.recv(4096)
                if not part:
                    break
                answer += part
            except TimeoutError:
                continue
            except OSError:
                break
        return answer, time.monotonic() - started

    def test_slowloris(self):
        """A head that never ends: 408 when `timeout http-request` is over, however busy the client looks."""
        proxy = self.start()
        for tls in (False, True):
            with self.subTest(tls=tls):
                sock = connect_tls(proxy.ports["tls"]) if tls else proxy.connect("web")
                head = b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 100
                answer, seconds = self.drip(sock, head, 0.1)
                sock.close()
                self.assertEqual(status_of(answer), 408, answer)
                self.assertGreater(seconds, 0.7)
                self.assertLess(seconds, 2.5)
        proxy.wait_output(r" 408 .* cR-- .*<BADREQ>", count=2)
        self.assertEqual(self.backend.requests, [])

    def test_many_slow_clients_hinder_nobody(self):
        proxy = self.start()
        slow = [proxy.connect("web") for _ in range(200)]
        for sock in slow:
            sock.sendall(b"GET / HTTP/1.1\r\n")
        for _ in range(10):
            started = time.monotonic()
            self.assertEqual(curl(proxy.url("web")), "hello\n")
            self.assertLess(time.monotonic() - started, 1)
        for sock in slow:
            self.assertEqual(status_of(read_all(sock)), 408)
            sock.close()

    def test_silent_client(self):
        """Nothing at all: ended by the same time; with dontlognull nothing is logged."""
        proxy = self.start(config=CONFIG.replace("option httplog", "option httplog\n    option dontlognull"))
        sock = proxy.connect("web")
        started = time.monotonic()
        read_all(sock)
        self.assertLess(time.monotonic() - started, 2.5)
        sock.close()
        self.assertEqual(curl(proxy.url("web")), "hello\n")
        proxy.wait_output(r" 200 ")
        self.assertNotIn("<BADREQ>", proxy.output())

    def test_stalled_handshake(self):
        """A TLS client that stops in the middle of its hello is ended, too."""
        proxy = self.start()
        sock = proxy.connect("tls")
        sock.sendall(b"\x16\x03\x01\x02\x00\x01")
        started = time.monotonic()
        read_all(sock)
        self.assertLess(time.monotonic() - started, 4)
        sock.close()

    def test_slow_body(self):
        """A body that stops: 408 for the client, and the log says that it was the client."""
        def handler(connection):
            head = connection.head()
            connection.body(head)
            connection.answer(b"done")

        proxy = self.start(handler)
        with proxy.connect("web") as sock:
            sock.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\npart")
            answer = read_all(sock)
        self.assertIn(status_of(answer), (0, 408, 504), answer)
        proxy.wait_output(r"app/s1 .* (408|400|504|-1) .* [cs][DH]--")

    def test_slow_but_steady_body(self):
        """Slow is allowed as long as there is progress."""
        def handler(connection):
            _, body = connection.request()
            connection.answer(body)

        proxy = self.start(handler, CONFIG.replace("timeout http-request 1s", "").replace("server 1s", "server 5s"))
        with proxy.connect("web") as sock:
            client = Connection(sock)
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\n\r\n")
            for _ in range(12):
                time.sleep(0.25)
                client.send(b"x")
            self.assertEqual(client.response()[2], b"x" * 12)

    def test_stalled_server(self):
        proxy = self.start(lambda connection: (connection.request(), time.sleep(4)))
        started = time.monotonic()
        answer = proxy.raw("web", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertEqual(status_of(answer), 504)
        self.assertLess(time.monotonic() - started, 3)
        proxy.wait_output(r" 504 .* sH--")

    def test_server_that_stops_in_the_body(self):
        def handler(connection):
            connection.request()
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            time.sleep(4)

        proxy = self.start(handler)
        answer = proxy.raw("web", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertTrue(answer.endswith(b"half"), answer)
        proxy.wait_output(r" 200 .* sD--")

    def test_slow_reader(self):
        """A client that reads slowly gets everything; a server that has done its part is let go."""
        size = 3 << 20
        done = threading.Event()

        def handler(connection):
            connection.request()
            connection.answer(b"z" * size)
            done.set()

        proxy = self.start(handler, CONFIG.replace("timeout client 2s", "timeout client 10s").replace(
            "timeout server 1s", "timeout server 10s"))
        with proxy.connect("web") as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            time.sleep(0.5)
            received = 0
            while True:
                part = sock.recv(100000)
                if not part:
                    break
                received += len(part)
                time.sleep(0.005)
        self.assertGreater(received, size)
        self.assertTrue(done.wait(5))

    def test_reader_that_stops(self):
        """The client's timeout ends it; the log says whose fault it was."""
        def handler(connection):
            connection.request()
            connection.answer(b"z" * (64 << 20))

        proxy = self.start(handler, CONFIG.replace("timeout server 1s", "timeout server 10s"))
        with proxy.connect("web") as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            sock.recv(1000)
            proxy.wait_output(r" 200 .* cD--", 10)

    def test_half_closed_client(self):
        """A client that has ended its side still gets its answer."""
        def handler(connection):
            connection.request()
            time.sleep(0.3)
            connection.answer(b"late")

        proxy = self.start(handler)
        with proxy.connect("web") as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            sock.shutdown(1)
            self.assertTrue(read_all(sock).endswith(b"late"))

    def test_idle_kept_connection(self):
        """`timeout http-keep-alive` counts between requests."""
        proxy = self.start()
        with proxy.connect("web") as sock:
            client = Connection(sock)
            for _ in range(2):
                client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                self.assertEqual(client.response()[2], b"hello\n")
                time.sleep(0.5)
            started = time.monotonic()
            self.assertEqual(read_all(sock), b"")
            self.assertLess(time.monotonic() - started, 2)

    def test_idle_tunnel(self):
        def handler(connection):
            connection.head()
            connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
            connection.sock.recv(1)

        proxy = self.start(handler, CONFIG.replace("client 2s", "client 20s").replace("server 1s", "server 20s"))
        with proxy.connect("web") as sock:
            client = Connection(sock)
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
            self.assertIn(b" 101 ", client.head())
            started = time.monotonic()
            self.assertEqual(read_all(sock), b"")
            self.assertLess(time.monotonic() - started, 4)


if __name__ == "__main__":
    unittest.main()
