"""Servers that break: at every point of a request, and what becomes of it."""

import socket
import ssl
import threading
import time
import unittest

from harness import Authority, Case, Connection, free_port, read_all, serve_hello, status_of, wait_until

DEFAULTS = """
defaults
    mode http
    option httplog
    log stdout format raw local0
    timeout connect 500ms
    timeout client 5s
    timeout server 3s
"""

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
CLOSING = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


class OneServer(Case):
    """Each fault alone: the client's answer, the log's flags, and that the next request is served."""

    def start(self, handler, lines="retries 0", server="", engine="auto", **ports):
        backend = self.server(handler)
        self.backend = backend
        return self.proxy("global\n    io-engine " + engine + DEFAULTS + """
listen web
    bind 127.0.0.1:@web@
    %s
    server s1 127.0.0.1:@server@ %s
""" % (lines, server), server=backend.port, **ports)

    def faulty_once(self, fault):
        """A server whose first connection is faulty; the others are good."""
        def handler(connection):
            if connection.number == 1:
                fault(connection)
            else:
                serve_hello(connection)
        return handler

    def check(self, fault, expected, flags, lines="retries 0"):
        proxy = self.start(self.faulty_once(fault), lines)
        answer = proxy.raw("web", CLOSING)
        self.assertIn(status_of(answer), expected, answer)
        proxy.wait_output(flags)
        again = proxy.raw("web", CLOSING)
        self.assertEqual(status_of(again), 200, again)
        self.assertTrue(again.endswith(b"hello\n"))
        return answer

    def test_closes_without_an_answer(self):
        self.check(lambda c: c.request(), [502], r" 502 .* SH--")

    def test_resets_without_an_answer(self):
        self.check(lambda c: (c.request(), c.reset()), [502], r" 502 .* SH--")

    def test_resets_at_once(self):
        self.check(lambda c: c.reset(), [502, 503], r" 50[23] .* S[HC]--")

    def test_closes_in_the_head(self):
        self.check(lambda c: (c.request(), c.send(b"HTTP/1.1 200 OK\r\nContent-Le")), [502], r" 502 .* SH--")

    def test_truncates_by_close(self):
        def fault(c):
            c.request()
            c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")

        answer = self.check(fault, [200], r" 200 .* SD--")
        self.assertTrue(answer.endswith(b"only this"))

    def test_truncates_by_reset(self):
        def fault(c):
            c.request()
            c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
            time.sleep(0.2)
            c.reset()

        self.check(fault, [200], r" 200 .* SD--")

    def test_truncated_chunks_end_without_a_last_chunk(self):
        """The client can tell that something is missing."""
        def fault(c):
            c.request()
            c.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")

        answer = self.check(fault, [200], r" 200 .* SD--")
        self.assertNotIn(b"\r\n0\r\n\r\n", answer)

    def test_garbage(self):
        self.check(lambda c: (c.request(), c.send(b"\x00\x01\x02 this is not HTTP\r\n\r\n" * 10)),
                   [502], r" 502 .* PH--")

    def test_endless_head(self):
        def fault(c):
            c.request()
            c.send(b"HTTP/1.1 200 OK\r\n")
            for _ in range(2000):
                c.send(b"X-Endless: " + b"y" * 100 + b"\r\n")

        self.check(fault, [502], r" 502 .* P[H]--")

    def check_early_answer(self, engine="auto", server="", tls=None):
        def fault(c):
            if tls:
                c.sock = tls.wrap_socket(c.sock, server_side=True)
            c.head()
            c.answer(b"too much", "413 Too Large", b"Connection: close\r\n")

        proxy = self.start(self.faulty_once(fault), server=server, engine=engine)
        with proxy.connect("web") as sock:
            sock.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\n" + b"x" * 65536)
            status, _, body = Connection(sock).response()
        self.assertEqual((status, body), (413, b"too much"))

    def test_answers_and_resets_while_the_request_is_sent(self):
        """An early answer is passed on although the rest of the request finds nobody."""
        self.check_early_answer()

    def test_answers_and_resets_with_epoll(self):
        self.check_early_answer("epoll")

    def test_tls_server_answers_and_resets(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(Authority(self.path("certs")).issue("s.pem", "localhost"))
        for engine in ("auto", "epoll"):
            self.check_early_answer(engine, "ssl verify none", context)

    def test_server_vanishes_while_the_client_uploads(self):
        def fault(c):
            c.head()
            c.reset()

        proxy = self.start(self.faulty_once(fault))
        with proxy.connect("web") as sock:
            try:
                sock.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\n")
                for _ in range(50):
                    sock.sendall(b"x" * 10000)
                    time.sleep(0.01)
            except OSError:
                pass
            answer = read_all(sock)
        self.assertIn(status_of(answer), (0, 502), answer)
        proxy.wait_output(r" (502|-1) .* S[HD]--")
        self.assertEqual(status_of(proxy.raw("web", CLOSING)), 200)

    def test_interim_answers_only(self):
        self.check(lambda c: (c.request(), c.send(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 5)), [103, 502],
                   r" (103|502) .* S[HD]--")


class KeptConnections(Case):
    """A kept server connection that is dead when its turn comes: the client must not notice."""

    def start(self, handler, lines=""):
        self.backend = self.server(handler)
        return self.proxy("global\n    nbthread 1\n" + DEFAULTS + """
listen web
    bind 127.0.0.1:@web@
    http-reuse always
    retries 2
    %s
    server s1 127.0.0.1:@server@
""" % lines, server=self.backend.port)

    def ask_again(self, proxy, count=5, pause=0.1, request=REQUEST):
        with proxy.connect("web") as sock:
            client = Connection(sock)
            for number in range(count):
                client.send(request)
                status, _, body = client.response()
                self.assertEqual((status, body), (200, b"hello\n"), number)
                time.sleep(pause)

    def test_closed_at_once_after_each_answer(self):
        def handler(connection):
            connection.request()
            connection.answer(b"hello\n")

        proxy = self.start(handler)
        self.ask_again(proxy)
        self.assertEqual(len(self.backend.connections), 5)

    def test_closed_at_once_without_a_pause(self):
        """The next request may be on its way when the end arrives."""
        def handler(connection):
            connection.request()
            connection.answer(b"hello\n")

        proxy = self.start(handler, "retry-on conn-failure empty-response")
        self.ask_again(proxy, 200, 0)

    def test_closed_when_the_next_request_comes(self):
        """Closed unread: a request that may be repeated is, on a new connection."""
        def handler(connection):
            connection.request()
            connection.answer(b"hello\n")
            connection.sock.recv(1)

        proxy = self.start(handler, "retry-on conn-failure empty-response")
        self.ask_again(proxy)

    def test_reset_between_requests(self):
        def handler(connection):
            connection.request()
            connection.answer(b"hello\n")
            time.sleep(0.05)
            connection.reset()

        self.ask_again(self.start(handler), pause=0.2)

    def test_says_something_between_requests(self):
        """A 408 that nobody asked for, then the end: never taken for the next answer."""
        def handler(connection):
            connection.request()
            connection.answer(b"hello\n")
            time.sleep(0.05)
            connection.send(b"HTTP/1.1 408 Request Time-out\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        self.ask_again(self.start(handler), pause=0.2)

    def test_a_server_that_restarts(self):
        proxy = self.start(serve_hello)
        port = self.backend.port
        self.ask_again(proxy, 3)
        self.backend.close()
        time.sleep(0.1)
        again = socket.socket()
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))
        again.listen(10)
        self.addCleanup(again.close)

        def serve():
            while True:
                try:
                    sock, _ = again.accept()
                except OSError:
                    return
                connection = Connection(sock)
                try:
                    serve_hello(connection)
                except (OSError, EOFError):
                    pass

        threading.Thread(target=serve, daemon=True).start()
        self.ask_again(proxy, 3)


class Choice(Case):
    """Several servers, some of them out of order."""

    def start(self, servers, lines=""):
        return self.proxy(DEFAULTS + """
frontend web
    bind 127.0.0.1:@web@
    default_backend app
frontend counts
    bind 127.0.0.1:@counts@
    http-request return status 200 content-type text/plain lf-string "%%[nbsrv(app)]"
backend app
    balance roundrobin
    %s
%s
""" % (lines, servers), good=self.good.port)

    def setUp(self):
        super().setUp()
        self.good = self.server(serve_hello)

    def ask(self, proxy, count):
        return [status_of(proxy.raw("web", CLOSING)) for _ in range(count)]

    def test_refusing_server(self):
        """Retried, then sent elsewhere; nobody sees an error."""
        proxy = self.start("    server dead 127.0.0.1:1\n    server good 127.0.0.1:@good@",
                           "retries 1\n    option redispatch")
        self.assertEqual(self.ask(proxy, 4), [200] * 4)
        proxy.wait_output(r"app/good .*/\+1 0/0")

    def test_refusing_server_without_redispatch(self):
        proxy = self.start("    server dead 127.0.0.1:1\n    server good 127.0.0.1:@good@",
                           "retries 0\n    no option redispatch")
        self.assertEqual(sorted(self.ask(proxy, 4)), [200, 200, 503, 503])
        proxy.wait_output(r"app/dead .* 503 .* SC--")

    def black_hole(self):
        """A port whose connections are never completed: its queue is full."""
        hole = socket.socket()
        hole.bind(("127.0.0.1", 0))
        hole.listen(0)
        self.addCleanup(hole.close)
        address = hole.getsockname()
        for _ in range(20):
            filler = socket.socket()
            filler.setblocking(False)
            self.addCleanup(filler.close)
            filler.connect_ex(address)
        return address[1]

    def test_black_hole(self):
        """timeout connect, then another server; alone: 503 and sC in the log."""
        port = self.black_hole()
        proxy = self.start("    server hole 127.0.0.1:%d\n    server good 127.0.0.1:@good@" % port,
                           "retries 1\n    option redispatch")
        started = time.monotonic()
        self.assertEqual(self.ask(proxy, 2), [200, 200])
        self.assertLess(time.monotonic() - started, 6)

    def test_black_hole_alone(self):
        port = self.black_hole()
        proxy = self.start("    server hole 127.0.0.1:%d" % port, "retries 1")
        started = time.monotonic()
        self.assertEqual(self.ask(proxy, 1), [503])
        self.assertGreater(time.monotonic() - started, 0.8)
        self.assertLess(time.monotonic() - started, 5)
        proxy.wait_output(r"app/hole .* 503 .* sC--")

    def test_checks_take_a_server_out_and_in(self):
        """While it is out, no request is even tried there."""
        port = free_port()
        proxy = self.start("""    server flaky 127.0.0.1:%d check inter 100ms fall 2 rise 2
    server good 127.0.0.1:@good@ check inter 100ms""" % port, "retries 0")
        count = lambda: proxy.raw("counts", CLOSING)[-1:]  # noqa: E731
        wait_until(lambda: count() == b"1", "the server to be taken out")
        self.assertEqual(self.ask(proxy, 6), [200] * 6)
        flaky = socket.create_server(("127.0.0.1", port))

        def serve():
            while True:
                try:
                    sock, _ = flaky.accept()
                except OSError:
                    return
                threading.Thread(target=self.quietly, args=(sock,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        wait_until(lambda: count() == b"2", "the server to come back")
        self.assertEqual(self.ask(proxy, 6), [200] * 6)
        flaky.shutdown(socket.SHUT_RDWR)
        flaky.close()
        wait_until(lambda: count() == b"1", "the server to be taken out again")
        self.assertEqual(self.ask(proxy, 6), [200] * 6)

    def quietly(self, sock):
        try:
            serve_hello(Connection(sock))
        except (OSError, EOFError):
            pass

    def test_all_servers_down(self):
        proxy = self.start("    server dead 127.0.0.1:1 check inter 100ms fall 1", "retries 0")
        wait_until(lambda: proxy.raw("counts", CLOSING)[-1:] == b"0", "the server to be taken out")
        self.assertEqual(self.ask(proxy, 2), [503, 503])
        proxy.wait_output(r"app/<NOSRV> .* 503 .* SC--")

    def test_marked_down_ends_sessions(self):
        """on-marked-down shutdown-sessions: what hangs on a dead server ends with it."""
        port = free_port()
        listener = socket.create_server(("127.0.0.1", port))
        held = []

        def serve():
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                held.append(sock)

        threading.Thread(target=serve, daemon=True).start()
        proxy = self.start("    server s1 127.0.0.1:%d check inter 100ms fall 1 on-marked-down shutdown-sessions"
                           % port)
        client = proxy.connect("web")
        client.sendall(CLOSING)
        time.sleep(0.3)
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        started = time.monotonic()
        read_all(client)
        self.assertLess(time.monotonic() - started, 2.5)
        client.close()
        for sock in held:
            sock.close()

    def test_slow_start_of_a_queue(self):
        """A server with one place that breaks in the middle: those who wait get their turn."""
        def handler(connection):
            _, _ = connection.request()
            time.sleep(0.05)
            if connection.number % 3 == 0:
                connection.reset()
            else:
                connection.answer(b"hello\n", head=b"Connection: close\r\n")

        self.good.handler = handler
        proxy = self.start("    server good 127.0.0.1:@good@ maxconn 1",
                           "retries 0\n    timeout queue 5s")
        results = []
        threads = [threading.Thread(target=lambda: results.extend(self.ask(proxy, 1))) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(15)
        self.assertEqual(len(results), 12)
        self.assertTrue(set(results) <= {200, 502}, results)
        self.assertGreaterEqual(results.count(200), 6)


if __name__ == "__main__":
    unittest.main()
