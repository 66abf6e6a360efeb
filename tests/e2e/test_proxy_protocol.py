"""The PROXY protocol, byte by byte, with TLS behind it, to servers, and in the hands of the hostile."""

import re
import socket
import struct
import unittest

from harness import (
    IS_SALLYPORT, LIMITS, Authority, Case, Connection, ours_alone, read_all, unverified_context, wait_until,
)

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def v2(source="10.1.2.3", source_port=1111, target="10.4.5.6", target_port=2222, command=1, tlvs=b"", family=None):
    if ":" in source:
        family = family or 0x21
        addresses = socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, target)
    else:
        family = family or 0x11
        addresses = socket.inet_aton(source) + socket.inet_aton(target)
    body = addresses + struct.pack("!HH", source_port, target_port) + tlvs
    return SIGNATURE + bytes([0x20 | command, family]) + struct.pack("!H", len(body)) + body


CONFIG = """
defaults
    mode http
    option httplog
    log stdout format raw local0
    timeout http-request 1s
""" + LIMITS + """
frontend web
    bind 127.0.0.1:@web@ accept-proxy
    bind 127.0.0.1:@tls@ ssl crt @dir@/certs/web.pem accept-proxy
    http-request return status 200 content-type text/plain lf-string "%[src]:%[src_port] %[dst]:%[dst_port] %[ssl_fc]"
"""

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


class Accept(Case):
    def setUp(self):
        super().setUp()
        Authority(self.path("certs")).issue("web.pem", "localhost", ["127.0.0.1"])
        self.lb = self.proxy(CONFIG)

    def ask(self, header, pieces=None):
        with self.lb.connect("web") as sock:
            data = header + REQUEST
            for start in range(0, len(data), pieces or len(data)):
                sock.sendall(data[start:start + (pieces or len(data))])
            answer = read_all(sock)
        return answer.rpartition(b"\r\n\r\n")[2].decode()

    def test_both_versions_in_any_pieces(self):
        four = "10.1.2.3:1111 10.4.5.6:2222 0"
        six = "2001:db8::1:1111 2001:db8::2:2222 0"
        for pieces in (None, 1, 7) if IS_SALLYPORT else (None,):  # HAProxy wants the header in one piece
            self.assertEqual(self.ask(b"PROXY TCP4 10.1.2.3 10.4.5.6 1111 2222\r\n", pieces), four)
            self.assertEqual(self.ask(b"PROXY TCP6 2001:db8::1 2001:db8::2 1111 2222\r\n", pieces), six)
            self.assertEqual(self.ask(v2(), pieces), four)
            self.assertEqual(self.ask(v2("2001:db8::1", 1111, "2001:db8::2"), pieces), six)
        # Unknown values of known size are skipped.
        self.assertEqual(self.ask(v2(tlvs=b"\x04\0\x03abc" + b"\xea\0\x05hello")), four)

    def test_no_addresses(self):
        own = r"^127\.0\.0\.1:\d+ 127\.0\.0\.1:%d 0$" % self.lb.ports["web"]
        self.assertRegex(self.ask(b"PROXY UNKNOWN\r\n"), own)
        if IS_SALLYPORT:
            self.assertRegex(self.ask(b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"), own)
        self.assertRegex(self.ask(v2(command=0)), own)  # LOCAL: a health check
        self.assertRegex(self.ask(SIGNATURE + b"\x20\x00\x00\x00"), own)

    def test_before_tls(self):
        with self.lb.connect("tls") as sock:
            sock.sendall(v2())
            with unverified_context().wrap_socket(sock) as tls:
                tls.sendall(REQUEST)
                self.assertTrue(read_all(tls).endswith(b"10.1.2.3:1111 10.4.5.6:2222 1"))

    def test_the_log_has_the_address(self):
        self.ask(v2())
        self.lb.wait_output(r"^10\.1\.2\.3:1111 .* 200 ")

    @ours_alone
    def test_malformed_headers_close(self):
        """HAProxy 2.6 reads some of these leniently."""
        bad = [
            b"PROXY TCP4 10.1.2.3 10.4.5.6 1111\r\n",
            b"PROXY TCP4 10.1.2.3 10.4.5.6 1111 99999\r\n",
            b"PROXY TCP4 10.1.2 10.4.5.6 1111 2222\r\n",
            b"PROXY TCP4 ::1 ::2 1111 2222\r\n",
            b"PROXY TCP4 10.1.2.3 10.4.5.6 1111 2222 x\r\n",
            b"PROXY  TCP4 10.1.2.3 10.4.5.6 1111 2222\r\n",
            b"PROXY TCP9 10.1.2.3 10.4.5.6 1111 2222\r\n",
            b"PROXY TCP4 " + b"1" * 200 + b"\r\n",
            SIGNATURE + b"\x31\x11\x00\x0c" + b"\0" * 12,  # version 3
            SIGNATURE + b"\x21\x11\x00\x05" + b"\0" * 5,  # shorter than its family
            SIGNATURE + b"\x21\x11\xff\xff" + b"\0" * 12,  # much longer than anything
            b"",
        ]
        for header in bad:
            with self.subTest(header[:40]):
                self.assertEqual(self.ask(header), "")
        self.assertEqual(self.ask(v2()), "10.1.2.3:1111 10.4.5.6:2222 0")


class Send(Case):
    def start(self, options, extra=""):
        self.raw = []

        def handler(connection):
            data = connection.sock.recv(4096)
            while b"\r\n\r\n" not in data.replace(SIGNATURE, b""):
                data += connection.sock.recv(4096)
            self.raw.append(data)
            connection.answer(b"hello\n", head=b"Connection: close\r\n")

        server = self.server(handler)
        return self.proxy("""
defaults
    mode http
%s
listen web
    bind 127.0.0.1:@web@
    bind 127.0.0.1:@accept@ accept-proxy
    %s
    server s1 127.0.0.1:@server@ %s
""" % (LIMITS, extra, options), server=server.port)

    def test_version_1(self):
        proxy = self.start("send-proxy")
        with proxy.connect("web") as sock:
            own = sock.getsockname()[1]
            sock.sendall(REQUEST)
            self.assertIn(b"hello", read_all(sock))
        self.assertTrue(self.raw[0].startswith(
            b"PROXY TCP4 127.0.0.1 127.0.0.1 %d %d\r\nGET / " % (own, proxy.ports["web"])), self.raw)

    def test_version_2(self):
        proxy = self.start("send-proxy-v2")
        with proxy.connect("accept") as sock:
            sock.sendall(v2("2001:db8::1", 7, "2001:db8::2", 8) + REQUEST)
            self.assertIn(b"hello", read_all(sock))
        self.assertTrue(self.raw[0].startswith(v2("2001:db8::1", 7, "2001:db8::2", 8)), self.raw)
        self.assertIn(b"GET / ", self.raw[0])

    def test_not_shared_between_clients(self):
        """A connection that announced one client never carries another's request."""
        headers = []

        def handler(connection):
            line = connection.until(b"\r\n")
            while True:
                head, _ = connection.request()
                headers.append((line, re.search(rb"(?i)x-client: (\d)", head).group(1)))
                connection.answer(b"hello\n")

        server = self.server(handler)
        proxy = self.proxy("""
defaults
    mode http
%s
listen web
    bind 127.0.0.1:@web@ accept-proxy
    http-reuse always
    server s1 127.0.0.1:@server@ send-proxy
""" % LIMITS, server=server.port)
        for number in (1, 2, 1):
            with proxy.connect("web") as sock:
                client = Connection(sock)
                client.send(b"PROXY TCP4 10.0.0.%d 10.9.9.9 1000 80\r\n" % number)
                for _ in range(2):
                    client.send(b"GET / HTTP/1.1\r\nHost: a\r\nX-Client: %d\r\n\r\n" % number)
                    self.assertEqual(client.response()[0], 200)
        self.assertEqual(len(headers), 6)
        for line, number in headers:
            self.assertEqual(line, b"PROXY TCP4 10.0.0.%s 10.9.9.9 1000 80\r\n" % number)

    def test_health_checks_speak_it(self):
        """With check-send-proxy the check is announced as LOCAL or with its own address."""
        seen = []

        def handler(connection):
            seen.append(connection.until(b"\r\n"))

        server = self.server(handler)
        self.proxy("""
defaults
    mode http
%s
listen web
    bind 127.0.0.1:@web@
    server s1 127.0.0.1:@server@ check inter 100ms send-proxy
""" % LIMITS, server=server.port)
        wait_until(lambda: seen, "a check")
        self.assertRegex(seen[0], rb"^PROXY (UNKNOWN|TCP4 127\.0\.0\.1 127\.0\.0\.1 \d+ \d+)\r\n$")


if __name__ == "__main__":
    unittest.main()
