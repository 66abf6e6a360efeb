"""Large configurations and many connections: seconds and bounded memory."""

import base64
import os
import re
import resource
import time
import unittest

from harness import (
    IS_SALLYPORT, LIMITS, Authority, Case, Connection, connect_tls, curl, free_port, is_sanitized, serve_hello,
    unverified_context,
)

FRONTENDS = 1000
CERTIFICATES = 2000
CONNECTIONS = 2000


def first_port(count):
    """A range of free ports."""
    while True:
        start = free_port()
        if start + count < 32000:
            return start


class Scale(Case):
    def setUp(self):
        super().setUp()
        self.slowdown = 5 if is_sanitized() else 1
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20000), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

    def test_frontends(self):
        start = first_port(FRONTENDS)
        config = ["global\n    nbthread 2\ndefaults\n    mode http\n" + LIMITS]
        for number in range(FRONTENDS):
            config.append("""
frontend f%(n)d
    bind 127.0.0.1:%(port)d
    acl local path_beg /l
    http-request set-header X-F f%(n)d
    http-request return status 200 content-type text/plain lf-string "%%[fe_name] %%[req.hdr(X-F)]" if local
    default_backend b%(n)d
backend b%(n)d
    balance roundrobin
    server s1 127.0.0.1:1
    server s2 127.0.0.1:2 backup
""" % {"n": number, "port": start + number})
        began = time.monotonic()
        proxy = self.proxy("".join(config))
        seconds = time.monotonic() - began
        self.assertLess(seconds, 5 * self.slowdown)
        for number in (0, 1, FRONTENDS // 2, FRONTENDS - 1):
            out = curl("http://127.0.0.1:%d/l" % (start + number))
            self.assertEqual(out, "f%d f%d" % (number, number))
        began = time.monotonic()
        proxy.stop()
        self.assertLess(time.monotonic() - began, 3 * self.slowdown)

    def many_certificates(self):
        """
        One certificate, its name replaced byte by byte in copies. The signatures do not hold, which
        is nothing that a server looks at in its own certificates.
        """
        pem = Authority(self.path("ca")).issue("one.pem", "site-000000.example", ["site-000000.example"])
        with open(pem, encoding="ascii") as file:
            text = file.read()
        encoded = re.search(r"-----BEGIN CERTIFICATE-----\n(.*?)-----END", text, re.DOTALL).group(1)
        key = text[text.index("-----BEGIN PRIVATE KEY"):]
        der = base64.b64decode(encoded)
        self.assertEqual(der.count(b"site-000000"), 2)
        folder = self.path("many")
        os.mkdir(folder)
        for number in range(CERTIFICATES):
            copy = der.replace(b"site-000000", b"site-%06d" % number)
            with open("%s/%06d.pem" % (folder, number), "w", encoding="ascii") as file:
                file.write("-----BEGIN CERTIFICATE-----\n")
                file.write(base64.encodebytes(copy).decode())
                file.write("-----END CERTIFICATE-----\n")
                file.write(key)
        return folder

    def test_certificates(self):
        folder = self.many_certificates()
        began = time.monotonic()
        proxy = self.proxy("global\n    nbthread 2\ndefaults\n    mode http\n" + LIMITS + """
frontend web
    bind 127.0.0.1:@web@ ssl crt %s/
    http-request return status 200 content-type text/plain lf-string "%%[ssl_fc_sni]"
""" % folder)
        self.assertLess(time.monotonic() - began, 5 * self.slowdown if IS_SALLYPORT else 30)
        for number in (0, 1, 777, CERTIFICATES - 1):
            name = "site-%06d.example" % number
            with connect_tls(proxy.ports["web"], name) as tls:
                self.assertIn(name.encode(), tls.getpeercert(binary_form=True))
                tls.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                self.assertEqual(Connection(tls).response()[2], name.encode())
        if not is_sanitized() and IS_SALLYPORT:
            self.assertLess(proxy.rss_kib(), 150 * 1024)
        proxy.stop()

    def test_idle_tls_connections(self):
        """Held, each usable afterwards, and in bounded memory."""
        Authority(self.path("certs")).issue("web.pem", "localhost", ["127.0.0.1"])
        server = self.server(serve_hello)
        proxy = self.proxy("global\n    maxconn 3000\n    nbthread 2\ndefaults\n    mode http\n" + """
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen web
    bind 127.0.0.1:@web@ ssl crt @dir@/certs/web.pem
    server s1 127.0.0.1:@server@
""", server=server.port)
        context = unverified_context()
        before = proxy.rss_kib()
        clients = []
        for _ in range(CONNECTIONS):
            client = Connection(connect_tls(proxy.ports["web"], None, context))
            clients.append(client)
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(client.response()[0], 200)
        grown = proxy.rss_kib() - before
        for client in clients[::50]:
            client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(client.response()[2], b"hello\n")
        if not is_sanitized():
            self.assertLess(grown, CONNECTIONS * 100)
        for client in clients:
            client.close()


if __name__ == "__main__":
    unittest.main()
