"""mode tcp: any protocol, any direction first, bytes exact, half-closed ends, TLS in front."""

import hashlib
import os
import threading
import unittest

from harness import LIMITS, Authority, Case, connect_tls, read_all, wait_until

CONFIG = """
defaults
    mode tcp
    option tcplog
    log stdout format raw local0
""" + LIMITS + """
listen plain
    bind 127.0.0.1:@plain@
    bind 127.0.0.1:@tls@ ssl crt @dir@/certs/web.pem
    server s1 127.0.0.1:@server@
"""


class Tcp(Case):
    def setUp(self):
        super().setUp()
        Authority(self.path("certs")).issue("web.pem", "localhost", ["127.0.0.1"])

    def start(self, handler, config=CONFIG):
        self.backend = self.server(handler)
        return self.proxy(config, server=self.backend.port)

    def sockets(self, proxy):
        yield proxy.connect("plain")
        yield connect_tls(proxy.ports["tls"])

    def test_server_speaks_first(self):
        def handler(connection):
            connection.send(b"220 ready\r\n")
            connection.send(b"250 " + connection.until(b"\r\n"))

        proxy = self.start(handler)
        for sock in self.sockets(proxy):
            with sock:
                self.assertEqual(sock.recv(100), b"220 ready\r\n")
                sock.sendall(b"HELO x\r\n")
                self.assertEqual(read_all(sock), b"250 HELO x\r\n")
        proxy.wait_output(r" plain/s1 \d+/\d+/\d+ \d+ -- ", count=2)

    def test_every_byte_value_both_ways_at_once(self):
        """20 MB each way; neither waits for the other."""
        size = 20 << 20
        up, down = os.urandom(1 << 20) * 20, os.urandom(1 << 20) * 20
        seen = []

        def handler(connection):
            writer = threading.Thread(target=connection.send, args=(down,))
            writer.start()
            seen.append(hashlib.sha256(connection.exactly(size)).digest())
            writer.join()

        proxy = self.start(handler)
        for number, sock in enumerate(self.sockets(proxy)):
            with sock:
                got = hashlib.sha256()
                count = 0

                def read(sock=sock):
                    nonlocal count
                    while count < size:
                        part = sock.recv(1 << 16)
                        if not part:
                            break
                        got.update(part)
                        count += len(part)

                if number == 0:
                    reader = threading.Thread(target=read)
                    reader.start()
                    sock.sendall(up)
                    reader.join(60)
                else:  # one TLS object must not be read and written by two threads
                    sock.sendall(up[:1000])
                    for start in range(1000, size, 1 << 16):
                        sock.sendall(up[start:min(start + (1 << 16), size)])
                        if start % (1 << 18) < 1 << 16:
                            part = sock.recv(1 << 18)
                            got.update(part)
                            count += len(part)
                    read()
                self.assertEqual(count, size)
                self.assertEqual(got.digest(), hashlib.sha256(down).digest())
                wait_until(lambda number=number: len(seen) > number, "the server to have read all")
                self.assertEqual(seen[number], hashlib.sha256(up).digest())

    def test_half_closed(self):
        """The end of one direction is passed on while the other goes on."""
        def handler(connection):
            data = read_all(connection.sock)
            connection.send(b"got %d" % len(data))

        proxy = self.start(handler)
        with proxy.connect("plain") as sock:
            sock.sendall(b"x" * 100000)
            sock.shutdown(1)
            self.assertEqual(read_all(sock), b"got 100000")

    def test_half_closed_by_the_server(self):
        done = []

        def handler(connection):
            connection.send(b"only this")
            connection.sock.shutdown(1)
            done.append(connection.exactly(5))

        proxy = self.start(handler)
        with proxy.connect("plain") as sock:
            self.assertEqual(read_all(sock), b"only this")
            sock.sendall(b"still")
            wait_until(lambda: done == [b"still"], "what was sent after the server's end")

    def test_routing_by_sni(self):
        """tcp-request content with req.ssl_sni: TLS is passed through to the server of the name."""
        names = []

        def tls_server(label):
            def handler(connection):
                data = connection.sock.recv(4096)
                names.append((label, b"b.example" in data))
            return self.server(handler)

        a, b = tls_server("a"), tls_server("b")
        proxy = self.proxy("""
defaults
    mode tcp
%s
frontend sni
    bind 127.0.0.1:@sni@
    tcp-request inspect-delay 2s
    tcp-request content accept if { req.ssl_hello_type 1 }
    use_backend b if { req.ssl_sni -i b.example }
    default_backend a
backend a
    server s1 127.0.0.1:@a@
backend b
    server s1 127.0.0.1:@b@
""" % LIMITS, a=a.port, b=b.port)
        for name in ("b.example", "a.example", "B.EXAMPLE"):
            try:
                connect_tls(proxy.ports["sni"], name).close()
            except OSError:
                pass  # nobody there speaks TLS
        wait_until(lambda: len(names) == 3, "three connections")
        self.assertEqual([label for label, _ in names], ["b", "a", "b"])

    def test_rules_of_connections(self):
        proxy = self.proxy("""
defaults
    mode tcp
%s
frontend refused
    bind 127.0.0.1:@refused@
    tcp-request connection reject if { src 127.0.0.0/8 }
    default_backend app
frontend accepted
    bind 127.0.0.1:@accepted@
    tcp-request connection reject if { src 10.0.0.0/8 }
    default_backend app
backend app
    server s1 127.0.0.1:@server@
""" % LIMITS, server=self.server(lambda connection: connection.send(b"hello")).port)
        try:
            with proxy.connect("refused") as sock:
                self.assertEqual(read_all(sock), b"")
        except ConnectionResetError:
            pass  # it may be as fast as that
        with proxy.connect("accepted") as sock:
            self.assertEqual(read_all(sock), b"hello")

    def test_idle_timeouts(self):
        proxy = self.start(lambda connection: connection.sock.recv(1), CONFIG.replace(
            "timeout client 10s", "timeout client 500ms"))
        with proxy.connect("plain") as sock:
            self.assertEqual(read_all(sock), b"")
        proxy.wait_output(r" 0 cD ")

    def test_client_and_server_aborts_are_logged(self):
        def handler(connection):
            connection.send(b"x")
            connection.sock.recv(1)
            connection.reset()

        proxy = self.start(handler)
        with proxy.connect("plain") as sock:
            sock.recv(1)
            sock.sendall(b"y")
            read_all(sock)
        proxy.wait_output(r" plain/s1 \d+/\d+/\d+ 1 (SD|--) ")


if __name__ == "__main__":
    unittest.main()
