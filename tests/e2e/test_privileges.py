"""user, group and chroot: root binds and reads, somebody else serves."""

import os
import pwd
import grp
import re
import unittest

from harness import LIMITS, Authority, Case, curl, sanitizer_environment, serve_hello


@unittest.skipUnless(os.getuid() == 0, "only root can give up privileges")
class Privileges(Case):
    config = """
global
    user nobody
    group nogroup
    @more@
    log stdout format raw local0
defaults
    mode http
    log global
    option httplog
""" + LIMITS + """
frontend web
    bind 127.0.0.1:@web@
    bind 127.0.0.1:@tls@ ssl crt @dir@/certs/web.pem
    errorfile 503 @dir@/503.http
    http-request return status 200 content-type text/plain file @dir@/page if { path /page }
    http-request return status 200 content-type text/plain lf-string "%[path,map(@dir@/map,none)]" if { path_beg /map }
    use_backend none if { path /none }
    default_backend app
backend app
    server s1 127.0.0.1:@server@
backend none
"""

    def setUp(self):
        super().setUp()
        Authority(self.path("certs")).issue("web.pem", "localhost", ["127.0.0.1"])
        for name, text in (("page", "a page"), ("map", "/map/a found\n"),
                           ("503.http", "HTTP/1.1 503 Away\r\nContent-Length: 4\r\nConnection: close\r\n\r\naway")):
            os.chmod(self.write(name, text), 0o600)
        os.chmod(self.path("certs"), 0o700)

    def identity(self, pid):
        """(user ids, group ids, supplementary groups, capabilities) of every thread."""
        found = set()
        for thread in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/status" % (pid, thread), encoding="ascii") as file:
                text = file.read()
            found.add(tuple(re.search(r"^%s:[ \t]*(.*?)\s*$" % name, text, re.MULTILINE).group(1)
                            for name in ("Uid", "Gid", "Groups", "CapEff")))
        return found

    def start(self, more="", env=None):
        server = self.server(serve_hello)
        return self.proxy(self.config, more=more, server=server.port, env=env)

    def check_service(self, proxy):
        self.assertEqual(curl(proxy.url("web")), "hello\n")
        self.assertEqual(curl("-k", proxy.url("tls", scheme="https")), "hello\n")
        self.assertEqual(curl(proxy.url("web", "/page")), "a page")
        self.assertEqual(curl(proxy.url("web", "/map/a")), "found")
        self.assertEqual(curl(proxy.url("web", "/none")), "away")
        proxy.wait_output(r"app/s1 .* 200 ")

    def check_identity(self, proxy):
        user, group = pwd.getpwnam("nobody").pw_uid, grp.getgrnam("nogroup").gr_gid
        (found,) = self.identity(proxy.pid)
        self.assertEqual(found[0].split(), [str(user)] * 4)
        self.assertEqual(found[1].split(), [str(group)] * 4)
        self.assertNotIn("0", found[2].split())
        self.assertEqual(int(found[3], 16), 0)

    def test_user_and_group(self):
        """Files that only root can read have been read; every thread has changed."""
        proxy = self.start()
        self.check_service(proxy)
        self.check_identity(proxy)

    def test_chroot(self):
        os.mkdir(self.path("empty"), 0o755)
        # The search for leaks at the end needs /proc, which is not in there.
        options = sanitizer_environment()["ASAN_OPTIONS"].replace("detect_leaks=1", "detect_leaks=0")
        # Nor are the files of the reports: its standard error is.
        options = re.sub(r"log_path=[^:]*", "log_path=stderr", options)
        proxy = self.start("chroot %s" % self.path("empty"), {"ASAN_OPTIONS": options})
        self.check_service(proxy)
        self.check_identity(proxy)
        self.assertEqual(os.readlink("/proc/%d/root" % proxy.pid), self.path("empty"))
        self.assertEqual(os.readlink("/proc/%d/cwd" % proxy.pid), self.path("empty"))

    def test_numbers(self):
        proxy = self.proxy("""
global
    uid 65534
    gid 65534
defaults
    mode http
%s
frontend web
    bind 127.0.0.1:@web@
    http-request return status 200 content-type text/plain string ok
""" % LIMITS)
        self.assertEqual(curl(proxy.url("web")), "ok")
        (found,) = self.identity(proxy.pid)
        self.assertEqual(found[0].split(), ["65534"] * 4)

    def test_unix_socket_of_a_bind_line(self):
        """Its mode and owner are what the line says."""
        proxy = self.proxy("""
global
    user nobody
defaults
    mode http
%s
frontend web
    bind unix@@dir@/s.sock user nobody group nogroup mode 660
    bind 127.0.0.1:@web@
    http-request return status 200 content-type text/plain string ok
""" % LIMITS)
        status = os.stat(self.path("s.sock"))
        self.assertEqual((status.st_uid, status.st_gid, status.st_mode & 0o777),
                         (pwd.getpwnam("nobody").pw_uid, grp.getgrnam("nogroup").gr_gid, 0o660))
        self.assertEqual(curl("--unix-socket", self.path("s.sock"), "http://x/"), "ok")


if __name__ == "__main__":
    unittest.main()
