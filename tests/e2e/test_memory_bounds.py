"""Memory does not follow what peers do: bodies, clients that do not read, pipelines, heads."""

import contextlib
import socket
import threading
import time
import unittest

from harness import LIMITS, Case, Connection, is_sanitized, read_all, serve_hello, wait_until

CONFIG = """
global
    nbthread 2
    maxconn 3000
defaults
    mode http
""" + LIMITS + """
listen web
    bind 127.0.0.1:@web@
    server s1 127.0.0.1:@server@
"""


class Memory(Case):
    def setUp(self):
        super().setUp()
        self.allowance = 60000 if is_sanitized() else 12000  # KiB

    def start(self, handler, config=CONFIG):
        proxy = self.proxy(config, server=self.server(handler).port)
        proxy.raw("web", b"GET /first HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return proxy, proxy.rss_kib()

    def test_large_answer_to_a_slow_reader(self):
        """256 MB for a client that does not read: the server is slowed down instead."""
        sent = [0]

        def handler(connection):
            head, _ = connection.request()
            if b"/first" in head:
                return connection.answer()
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (256 << 20))
            block = b"x" * (1 << 20)
            for _ in range(256):
                connection.send(block)
                sent[0] += len(block)

        proxy, before = self.start(handler)
        with proxy.connect("web") as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            sock.recv(1000)
            time.sleep(1.5)
            self.assertLess(sent[0], 100 << 20)
            self.assertLess(proxy.rss_kib(), before + self.allowance)

    def test_large_request_to_a_slow_server(self):
        def handler(connection):
            head = connection.head()
            if b"/first" in head:
                return connection.answer()
            time.sleep(5)

        proxy, before = self.start(handler)
        sent = 0
        with proxy.connect("web", 1) as sock:
            sock.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (256 << 20))
            with contextlib.suppress(TimeoutError):
                while sent < 256 << 20:
                    sent += sock.send(b"x" * (1 << 20))
            self.assertLess(sent, 100 << 20)
            self.assertLess(proxy.rss_kib(), before + self.allowance)

    def test_large_bodies_pass(self):
        """300 MB through, both ways."""
        def handler(connection):
            head = connection.head()
            if b"/first" in head:
                return connection.answer()
            if head.startswith(b"POST"):
                left = 100 << 20
                while left:
                    part = connection.buffer or connection.sock.recv(1 << 18)
                    connection.buffer = b""
                    left -= len(part)
                return connection.answer(b"all of it")
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (200 << 20))
            block = b"x" * (1 << 20)
            for _ in range(200):
                connection.send(block)

        proxy, before = self.start(handler)
        with proxy.connect("web") as sock:
            sock.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % (100 << 20))
            block = b"y" * (1 << 20)
            for _ in range(100):
                sock.sendall(block)
            self.assertEqual(Connection(sock).response()[2], b"all of it")
        with proxy.connect("web") as sock:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            total, buffer = 0, bytearray(1 << 18)
            while total < 200 << 20:
                count = sock.recv_into(buffer)
                self.assertTrue(count)
                total += count
        self.assertLess(proxy.rss_kib(), before + self.allowance)

    def test_idle_connections(self):
        """A connection without a request takes next to nothing, a kept one little."""
        proxy, before = self.start(serve_hello)
        socks = []
        try:
            for number in range(800):
                sock = proxy.connect("web")
                socks.append(sock)
                if number % 2:
                    client = Connection(sock)
                    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                    self.assertEqual(client.response()[0], 200)
            grown = proxy.rss_kib() - before
            if not is_sanitized():
                self.assertLess(grown, 800 * 16 + 4000)
        finally:
            for sock in socks:
                sock.close()

    def test_endless_head_and_chunk_line(self):
        """Heads and chunk lines have an end, or the connection has."""
        proxy, before = self.start(serve_hello)
        for start, piece in ((b"GET / HTTP/1.1\r\nHost: a\r\n", b"X: y\r\n" * 1000),
                             (b"GET /", b"a" * 10000),
                             (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"e" * 10000),
                             (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
                              b"T: x\r\n" * 1000)):
            with self.subTest(start):
                sock = proxy.connect("web", 10)
                sent = 0
                with sock, contextlib.suppress(ConnectionError):
                    sock.sendall(start)
                    while sent < 20 << 20:
                        sent += sock.send(piece)
                self.assertLess(sent, 20 << 20)
        self.assertLess(proxy.rss_kib(), before + self.allowance)

    def test_pipeline_that_is_not_read(self):
        """A client that asks for ever and reads nothing is not answered for ever."""
        proxy, before = self.start(serve_hello)
        sent = 0
        with proxy.connect("web", 1.5) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            block = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 1000
            with contextlib.suppress(TimeoutError, ConnectionError):
                while sent < 200 << 20:
                    sent += sock.send(block)
            self.assertLess(sent, 200 << 20)
            self.assertLess(proxy.rss_kib(), before + self.allowance)

    def test_many_slow_readers(self):
        """Fifty clients with an answer under way each: some buffers each, not the answers."""
        def handler(connection):
            head, _ = connection.request()
            if b"/first" in head:
                return connection.answer()
            connection.answer(b"x" * (8 << 20))

        proxy, before = self.start(handler)
        socks = [proxy.connect("web") for _ in range(50)]
        for sock in socks:
            sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        time.sleep(1)
        self.assertLess(proxy.rss_kib(), before + self.allowance + 50 * 80)
        threads = [threading.Thread(target=read_all, args=(sock,)) for sock in socks[:10]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        for sock in socks:
            sock.close()
        wait_until(lambda: proxy.descriptors() < 50, "the end of the connections")


if __name__ == "__main__":
    unittest.main()
