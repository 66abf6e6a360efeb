#include "base/addr.h"

#include "base/status.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct addr_spec parse(const char *text, unsigned flags)
{
    struct addr_spec spec;
    const char *why = NULL;
    int status = addr_parse(text, flags, &spec, &why);

    if (status != 0)
        fail_msg("'%s': %s", text, why);
    return spec;
}

static void refuse(const char *text, unsigned flags, int expected)
{
    struct addr_spec spec, untouched;
    const char *why = NULL;

    memset(&spec, 0x5a, sizeof(spec));
    memset(&untouched, 0x5a, sizeof(untouched));
    if (addr_parse(text, flags, &spec, &why) != expected)
        fail_msg("'%s' was not refused as expected", text);
    assert_non_null(why);
    assert_memory_equal(&spec, &untouched, sizeof(spec));
}

static void assert_text(const struct addr_spec *spec, const char *expected)
{
    char text[ADDR_TEXT_BYTES];

    assert_int_equal(addr_text(&spec->addr, text), strlen(expected));
    assert_string_equal(text, expected);
}

static void ip_forms(void **state)
{
    static const struct {
        const char *text, *expected;
    } forms[] = {
        {"127.0.0.1:80", "127.0.0.1:80"},
        {"127.0.0.1", "127.0.0.1:0"},
        {"127.0.0.1:", "127.0.0.1:0"},
        {"*:80", "0.0.0.0:80"},
        {":80", "0.0.0.0:80"},
        {"*", "0.0.0.0:0"},
        {"[::]:443", "[::]:443"},
        {"[::1]", "[::1]:0"},
        {"::1:80", "[::1]:80"},
        {":::80", "[::]:80"},
        {"2001:db8::1:8080", "[2001:db8::1]:8080"},
        {"ipv4@1.2.3.4:5", "1.2.3.4:5"},
        {"ipv4@:5", "0.0.0.0:5"},
        {"ipv6@:5", "[::]:5"},
        {"ipv6@*:5", "[::]:5"},
        {"ipv6@[2001:db8::1]:5", "[2001:db8::1]:5"},
        {"ip@1.2.3.4:5", "1.2.3.4:5"},
        {"tcp4@1.2.3.4:5", "1.2.3.4:5"},
        {"tcp@1.2.3.4:5", "1.2.3.4:5"},
        {"tcp6@[::1]:5", "[::1]:5"},
        {"stream+ipv4@1.2.3.4:5", "1.2.3.4:5"},
        {"1.2.3.4:65535", "1.2.3.4:65535"},
        {"[::ffff:1.2.3.4]:5", "[::ffff:1.2.3.4]:5"},
    };

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct addr_spec spec = parse(forms[i].text, 0);

        assert_text(&spec, forms[i].expected);
        assert_int_equal(spec.fd, -1);
        assert_false(spec.datagram);
        assert_int_equal(spec.addr.len, spec.addr.u.sa.sa_family == AF_INET
                                            ? sizeof(struct sockaddr_in)
                                            : sizeof(struct sockaddr_in6));
    }
}

static void wildcards(void **state)
{
    assert_true(parse("*:80", 0).any);
    assert_true(parse(":80", 0).any);
    assert_true(parse("tcp@:80", 0).any);
    assert_false(parse("ipv4@:80", 0).any);
    assert_false(parse("ipv6@*:80", 0).any);
    assert_false(parse("0.0.0.0:80", 0).any);
    assert_false(parse("[::]:80", 0).any);
}

static void ports(void **state)
{
    struct addr_spec spec = parse("127.0.0.1:8000-8010", ADDR_PORT_RANGE);

    assert_int_equal(spec.port_low, 8000);
    assert_int_equal(spec.port_high, 8010);
    assert_int_equal(addr_port(&spec.addr), 8000);
    assert_true(spec.port_given);
    spec = parse("127.0.0.1:80", ADDR_PORT_RANGE | ADDR_PORT_REQUIRED);
    assert_int_equal(spec.port_low, 80);
    assert_int_equal(spec.port_high, 80);
    spec = parse("127.0.0.1", 0);
    assert_false(spec.port_given);
    assert_int_equal(spec.port_low, 0);
    assert_true(parse("127.0.0.1:0", 0).port_given);
    assert_int_equal(parse("*:7-7", ADDR_PORT_RANGE).port_high, 7);

    refuse("127.0.0.1:8000-8010", 0, SP_EINVAL);
    refuse("127.0.0.1:8010-8000", ADDR_PORT_RANGE, SP_EINVAL);
    refuse("127.0.0.1:8000-", ADDR_PORT_RANGE, SP_EINVAL);
    refuse("127.0.0.1:8000-8010-8020", ADDR_PORT_RANGE, SP_EINVAL);
    refuse("127.0.0.1:1-65536", ADDR_PORT_RANGE, SP_EINVAL);
    refuse("127.0.0.1:0-5", ADDR_PORT_RANGE | ADDR_PORT_REQUIRED, SP_EINVAL);
    refuse("127.0.0.1", ADDR_PORT_REQUIRED, SP_EINVAL);
    refuse("127.0.0.1:", ADDR_PORT_REQUIRED, SP_EINVAL);
    refuse("[::1]", ADDR_PORT_REQUIRED, SP_EINVAL);
    refuse("127.0.0.1:0", ADDR_PORT_REQUIRED, SP_EINVAL);
    refuse("127.0.0.1:65536", 0, SP_EINVAL);
    refuse("127.0.0.1:99999999999999999999", 0, SP_EINVAL);
    refuse("127.0.0.1:http", 0, SP_EINVAL);
    refuse("127.0.0.1:80x", 0, SP_EINVAL);
}

static void server_port_offsets(void **state)
{
    struct addr_spec spec = parse("10.0.0.1:+1", ADDR_PORT_OFFSET);

    assert_true(spec.port_is_offset && spec.port_given);
    assert_int_equal(spec.port_offset, 1);
    assert_int_equal(addr_port(&spec.addr), 0);
    assert_int_equal(parse("10.0.0.1:-1", ADDR_PORT_OFFSET).port_offset, -1);
    assert_int_equal(parse("[::1]:+65535", ADDR_PORT_OFFSET).port_offset, 65535);
    assert_int_equal(parse("10.0.0.1:+0", ADDR_PORT_OFFSET).port_offset, 0);
    assert_false(parse("10.0.0.1:8080", ADDR_PORT_OFFSET).port_is_offset);
    refuse("10.0.0.1:+1", 0, SP_EINVAL);
    refuse("10.0.0.1:+", ADDR_PORT_OFFSET, SP_EINVAL);
    refuse("10.0.0.1:-x", ADDR_PORT_OFFSET, SP_EINVAL);
    refuse("10.0.0.1:+65536", ADDR_PORT_OFFSET, SP_EINVAL);
}

static void unix_sockets(void **state)
{
    struct addr_spec spec = parse("/run/x.sock", ADDR_PORT_REQUIRED);
    char path[200];

    assert_int_equal(spec.addr.u.sa.sa_family, AF_UNIX);
    assert_string_equal(spec.addr.u.un.sun_path, "/run/x.sock");
    assert_text(&spec, "/run/x.sock");
    assert_false(spec.port_given);
    spec = parse("unix@relative", 0);
    assert_text(&spec, "relative");
    spec = parse("unix@/p", 0);
    assert_text(&spec, "/p");
    assert_true(parse("uxdg@/p", 0).datagram);
    assert_false(parse("uxst@/p", ADDR_DATAGRAM).datagram);
    /* No port in a path: the colon is a character. */
    spec = parse("/a:80", 0);
    assert_text(&spec, "/a:80");

    memset(path, 'p', sizeof(path));
    path[0] = '/';
    path[107] = '\0';
    spec = parse(path, 0);
    assert_text(&spec, path);
    path[107] = 'p';
    path[108] = '\0';
    refuse(path, 0, SP_EINVAL);
    refuse("unix@", 0, SP_EINVAL);
}

static void abstract_sockets(void **state)
{
    struct addr_spec spec = parse("abns@x", 0);
    char name[200] = "abns@";

    assert_int_equal(spec.addr.u.sa.sa_family, AF_UNIX);
    assert_int_equal(spec.addr.len, sizeof(struct sockaddr_un));
    assert_memory_equal(spec.addr.u.un.sun_path, "\0x\0\0", 4);
    assert_text(&spec, "abns@x");
    spec = parse("abnsz@xy", 0);
    assert_int_equal(spec.addr.len, offsetof(struct sockaddr_un, sun_path) + 3);
    assert_text(&spec, "abns@xy");
    memset(name + 5, 'n', 107);
    name[112] = '\0';
    spec = parse(name, 0);
    assert_text(&spec, name);
    name[112] = 'n';
    name[113] = '\0';
    refuse(name, 0, SP_EINVAL);
    refuse("abns@", 0, SP_EINVAL);
}

static void descriptors(void **state)
{
    struct addr_spec spec = parse("fd@3", ADDR_PORT_REQUIRED);

    assert_int_equal(spec.fd, 3);
    assert_int_equal(spec.addr.u.sa.sa_family, AF_UNSPEC);
    assert_int_equal(parse("fd@0", 0).fd, 0);
    refuse("fd@", 0, SP_EINVAL);
    refuse("fd@-1", 0, SP_EINVAL);
    refuse("fd@3x", 0, SP_EINVAL);
    refuse("fd@4294967299", 0, SP_EINVAL);
}

static void transports(void **state)
{
    assert_true(parse("127.0.0.1:514", ADDR_DATAGRAM).datagram);
    assert_true(parse("dgram+ipv4@127.0.0.1:514", 0).datagram);
    assert_true(parse("dgram+127.0.0.1:514", 0).datagram);
    assert_true(parse("dgram+unix@/p", 0).datagram);
    assert_true(parse("udp@127.0.0.1:514", 0).datagram);
    assert_true(parse("udp4@127.0.0.1:514", 0).datagram);
    assert_true(parse("udp6@[::1]:514", 0).datagram);
    assert_false(parse("stream+ipv4@127.0.0.1:514", ADDR_DATAGRAM).datagram);
    assert_false(parse("tcp4@127.0.0.1:514", ADDR_DATAGRAM).datagram);
}

static void refusals(void **state)
{
    static const char *const bad[] = {
        "",
        "1.2.3:80",
        "256.1.1.1:80",
        "[::1",
        "[::1]x:80",
        "::g:80",
        "::1]:80",
        "[]:80",
        "[1.2.3.4]:80",
        "ipv4@[::1]:80",
        "ipv4@::1:80",
        "ipv6@1.2.3.4:80",
        "a b:80",
        "http://x:80",
        "foo@bar:80",
        "sockpair@3",
        "quic4@:443",
        "[localhost]:80",
        "%eth0:80",
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        refuse(bad[i], 0, SP_EINVAL);
    /* An empty address is the wildcard once there is a prefix. */
    assert_true(parse("stream+", 0).any);
    refuse("stream+", ADDR_PORT_REQUIRED, SP_EINVAL);
    refuse(NULL, 0, SP_EINVAL);
}

static void host_names(void **state)
{
    struct addr_spec spec;
    char long_name[400];

    refuse("localhost:80", 0, SP_ENOENT);
    refuse("my_host-1.example:80", 0, SP_ENOENT);
    spec = parse("localhost:80", ADDR_RESOLVE);
    assert_true(spec.addr.u.sa.sa_family == AF_INET || spec.addr.u.sa.sa_family == AF_INET6);
    assert_int_equal(addr_port(&spec.addr), 80);
    spec = parse("ipv4@localhost:80", ADDR_RESOLVE);
    assert_text(&spec, "127.0.0.1:80");
    refuse("does-not-exist.invalid:80", ADDR_RESOLVE, SP_ENOENT);
    refuse("[localhost]:80", ADDR_RESOLVE, SP_EINVAL);
    memset(long_name, 'a', sizeof(long_name));
    long_name[399] = '\0';
    refuse(long_name, ADDR_RESOLVE, SP_EINVAL);
}

static void port_and_text_of_other_families(void **state)
{
    struct addr a = {0};
    struct addr_spec spec = parse("/p", 0);
    char text[ADDR_TEXT_BYTES];

    assert_int_equal(addr_text(&a, text), 0);
    assert_string_equal(text, "");
    assert_int_equal(addr_port(&a), 0);
    addr_set_port(&spec.addr, 80);
    assert_int_equal(addr_port(&spec.addr), 0);
    assert_text(&spec, "/p");
    /* What accept gives for the client of a Unix socket: a family and no name. */
    a.u.sa.sa_family = AF_UNIX;
    a.len = sizeof(sa_family_t);
    assert_int_equal(addr_text(&a, text), 0);
    spec = parse("[2001:db8::1]:5", 0);
    assert_int_equal(addr_host_text(&spec.addr, text), 11);
    assert_string_equal(text, "2001:db8::1");
    addr_set_port(&spec.addr, 65535);
    assert_int_equal(addr_port(&spec.addr), 65535);
}

static void equality(void **state)
{
    static const char *const texts[] = {"1.2.3.4:5", "1.2.3.4:6", "1.2.3.5:5", "[::1]:5", "[::1]:6",
                                        "[::2]:5",   "/a",        "/b",        "abns@a",  "abns@b"};

    for (size_t i = 0; i < 10; i++) {
        for (size_t k = 0; k < 10; k++) {
            struct addr_spec a = parse(texts[i], 0), b = parse(texts[k], 0);

            assert_int_equal(addr_equal(&a.addr, &b.addr), i == k);
        }
    }
}

static bool contains(const char *net_text, const char *client)
{
    struct addr_net net;
    struct addr_spec spec = parse(client, 0);

    assert_int_equal(addr_net_parse(str_of(net_text), &net), 0);
    return addr_net_contains(&net, &spec.addr);
}

static void networks(void **state)
{
    assert_true(contains("10.0.0.0/8", "10.255.0.1"));
    assert_false(contains("10.0.0.0/8", "11.0.0.1"));
    assert_true(contains("10.1.2.3/8", "10.0.0.1")); /* bits behind the prefix do not count */
    assert_true(contains("192.168.4.0/22", "192.168.7.255"));
    assert_false(contains("192.168.4.0/22", "192.168.8.0"));
    assert_true(contains("10.0.0.1", "10.0.0.1"));
    assert_false(contains("10.0.0.1", "10.0.0.2"));
    assert_true(contains("0.0.0.0/0", "1.2.3.4"));
    assert_true(contains("::1/128", "[::1]"));
    assert_true(contains("2001:db8::/33", "[2001:db8:7fff::1]"));
    assert_false(contains("2001:db8::/33", "[2001:db8:8000::1]"));
    assert_true(contains("::/0", "[2001:db8::1]"));
    assert_false(contains("10.0.0.0/8", "/p"));
    assert_false(contains("::/0", "fd@3"));
}

static void mapped_networks(void **state)
{
    assert_true(contains("10.0.0.0/8", "[::ffff:10.1.1.1]"));
    assert_false(contains("10.0.0.0/8", "[::ffff:11.1.1.1]"));
    assert_false(contains("10.0.0.0/8", "[2001:db8::1]"));
    assert_false(contains("0.0.0.0/0", "[2001:db8::1]"));
    assert_true(contains("0.0.0.0/0", "[::ffff:1.2.3.4]"));
    assert_true(contains("::ffff:10.0.0.0/104", "10.1.1.1"));
    assert_false(contains("::ffff:10.0.0.0/104", "11.1.1.1"));
    assert_false(contains("::/0", "1.2.3.4"));
    assert_false(contains("2001:db8::/32", "32.1.13.184"));
}

static void bad_networks(void **state)
{
    static const char *const bad[] = {"",
                                      "/8",
                                      "10.0.0.0/",
                                      "10.0.0.0/33",
                                      "10.0.0.0/-1",
                                      "10/8",
                                      "10.0.0.0/8/8",
                                      "::/129",
                                      "x",
                                      "10.0.0.0/255.0.0.0",
                                      "[::1]",
                                      "1111:1111:1111:1111:1111:1111:1111:1111:1111:1111/1"};
    struct addr_net net = {.family = 77};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (addr_net_parse(str_of(bad[i]), &net) != SP_EINVAL)
            fail_msg("accepted: %s", bad[i]);
    }
    assert_int_equal(net.family, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ip_forms),
        cmocka_unit_test(wildcards),
        cmocka_unit_test(ports),
        cmocka_unit_test(server_port_offsets),
        cmocka_unit_test(unix_sockets),
        cmocka_unit_test(abstract_sockets),
        cmocka_unit_test(descriptors),
        cmocka_unit_test(transports),
        cmocka_unit_test(refusals),
        cmocka_unit_test(host_names),
        cmocka_unit_test(port_and_text_of_other_families),
        cmocka_unit_test(equality),
        cmocka_unit_test(networks),
        cmocka_unit_test(mapped_networks),
        cmocka_unit_test(bad_networks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
