"""Clients that break: aborted requests, aborted answers, aborted handshakes, and what the server sees."""

import random
import socket
import threading
import time
import unittest

from harness import (
    Authority, Case, Connection, connect_tls, curl, read_all, serve_hello, status_of, wait_until,
)

CONFIG = """
global
    nbthread 2
defaults
    mode http
    option httplog
    log stdout format raw local0
    timeout connect 1s
    timeout client 5s
    timeout server 5s
    @more@
listen web
    bind 127.0.0.1:@web@
    bind 127.0.0.1:@tls@ ssl crt @dir@/certs/web.pem
    server s1 127.0.0.1:@server@
"""

CLOSING = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    sock.close()


class Aborts(Case):
    def setUp(self):
        super().setUp()
        Authority(self.path("certs")).issue("web.pem", "localhost", ["127.0.0.1"])

    def start(self, handler=serve_hello, more=""):
        self.backend = self.server(handler)
        return self.proxy(CONFIG, server=self.backend.port, more=more)

    def alive(self, proxy):
        self.assertEqual(curl(proxy.url("web")), "hello\n")

    def test_in_the_head(self):
        proxy = self.start()
        for end in (socket.socket.close, reset):
            sock = proxy.connect("web")
            sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n")
            time.sleep(0.05)
            end(sock)
        proxy.wait_output(r" (400|-1) .* CR--.*<BADREQ>", count=2)
        self.assertEqual(self.backend.requests, [])
        self.alive(proxy)

    def test_in_the_body(self):
        """The server sees the end of a request that is not whole."""
        ends = []

        def handler(connection):
            try:
                connection.request()
                connection.answer(b"hello\n")
            except (EOFError, OSError):
                ends.append(True)
                raise

        proxy = self.start(handler)
        for end in (socket.socket.close, reset):
            sock = proxy.connect("web")
            sock.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\npart")
            wait_until(lambda: self.backend.connections, "the request at the server")
            time.sleep(0.1)
            end(sock)
        wait_until(lambda: len(ends) == 2, "the end at the server")
        proxy.wait_output(r"web/s1 .* C[DH]--", count=2)
        self.alive(proxy)

    def test_in_the_answer(self):
        """The server is not made to send the rest to nobody."""
        ends = []

        def handler(connection):
            connection.request()
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
            try:
                while True:
                    connection.send(b"x" * 65536)
            except OSError:
                ends.append(True)

        proxy = self.start(handler)
        for end in (socket.socket.close, reset):
            sock = proxy.connect("web")
            sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            sock.recv(1000)
            end(sock)
        wait_until(lambda: len(ends) == 2, "the end at the server", 10)
        proxy.wait_output(r"web/s1 .* 200 .* CD--", count=2)

    def test_while_waiting(self):
        """With abortonclose a client that leaves takes its request along."""
        ended = threading.Event()

        def handler(connection):
            head, _ = connection.request()
            if b"/wait" in head:
                read_all(connection.sock)
                ended.set()
            else:
                connection.answer(b"hello\n")

        proxy = self.start(handler, "option abortonclose")
        sock = proxy.connect("web")
        sock.sendall(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_until(lambda: self.backend.requests, "the request at the server")
        sock.close()
        self.assertTrue(ended.wait(3))
        proxy.wait_output(r"web/s1 .* C[HD]--")
        self.alive(proxy)

    def test_in_the_queue(self):
        """A client that leaves while it waits for a place frees its place in the queue."""
        go = threading.Event()

        def handler(connection):
            connection.request()
            if len(self.backend.requests) == 1:
                go.wait(10)
            connection.answer(b"hello\n", head=b"Connection: close\r\n")

        self.backend = self.server(handler)
        proxy = self.proxy(CONFIG.replace("127.0.0.1:@server@", "127.0.0.1:@server@ maxconn 1"),
                           server=self.backend.port, more="option abortonclose\n    timeout queue 5s")
        first = proxy.connect("web")
        first.sendall(CLOSING)
        wait_until(lambda: self.backend.requests, "the first request")
        leaving = [proxy.connect("web") for _ in range(5)]
        for sock in leaving:
            sock.sendall(CLOSING)
        time.sleep(0.2)
        for sock in leaving:
            sock.close()
        last = proxy.connect("web")
        last.sendall(CLOSING)
        time.sleep(0.2)
        go.set()
        self.assertEqual(status_of(read_all(first)), 200)
        self.assertEqual(status_of(read_all(last)), 200)
        proxy.wait_output(r" C[QH]--", count=5)
        self.assertEqual(len(self.backend.requests), 2)

    def test_in_the_handshake(self):
        proxy = self.start()
        for length in (0, 1, 5, 50, 200):
            sock = proxy.connect("tls")
            sock.sendall((b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"r" * 300)[:length])
            reset(sock) if length % 2 else sock.close()
        for _ in range(3):
            tls = connect_tls(proxy.ports["tls"])
            tls.sendall(b"GET / HT")
            reset(tls)
        self.assertEqual(curl("-k", proxy.url("tls", scheme="https")), "hello\n")

    def test_in_a_tunnel(self):
        ended = []

        def handler(connection):
            head = connection.head()
            if b"pgrade" not in head:
                connection.answer(b"hello\n")
                return
            connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
            try:
                read_all(connection.sock)
            finally:
                ended.append(True)

        proxy = self.start(handler)
        for end in (socket.socket.close, reset):
            client = Connection(proxy.connect("web"))
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
            self.assertIn(b" 101 ", client.head())
            end(client.sock)
        wait_until(lambda: len(ended) == 2, "the end of the tunnels at the server")
        self.alive(proxy)

    def test_at_any_time(self):
        """Three hundred clients that end at random moments, on both ports, while others are served."""
        chance = random.Random(7)
        proxy = self.start(self.sized)
        failures = []

        def good():
            for _ in range(30):
                answer = proxy.raw("web", CLOSING)
                if status_of(answer) != 200 or not answer.endswith(b"." * 50000):
                    failures.append(answer[:200])

        threads = [threading.Thread(target=good) for _ in range(3)]
        for thread in threads:
            thread.start()
        request = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" * 2
        for number in range(300):
            try:
                sock = connect_tls(proxy.ports["tls"]) if number % 3 == 0 else proxy.connect("web")
                sock.sendall(request[:chance.randrange(len(request))])
                if chance.random() < 0.5:
                    sock.settimeout(0.01)
                    sock.recv(chance.randrange(1, 60000))
            except OSError:
                pass
            reset(sock) if chance.random() < 0.5 else sock.close()
        for thread in threads:
            thread.join(30)
        self.assertEqual(failures, [])

    def sized(self, connection):
        while True:
            connection.request()
            connection.answer(b"." * 50000)


if __name__ == "__main__":
    unittest.main()
