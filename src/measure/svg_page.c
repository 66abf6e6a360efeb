/*
 * The page around the plots: style, light and dark, escaping.
 */
#include "measure/svg.h"

/*
 * The series' colours keep apart for people who do not see red and green alike, on both backgrounds. Text never
 * wears them.
 */
static const char style[] =
    ":root{color-scheme:light dark;--page:#f9f9f7;--card:#fcfcfb;--ink:#0b0b0b;--ink2:#52514e;--muted:#75746e;"
    "--grid:#e1e0d9;--axis:#a9a8a0;--edge:#0b0b0b1a;--s0:#2a78d6;--s1:#1baf7a;--s2:#eda100;--s3:#008300;"
    "--s4:#4a3aa7;--s5:#e34948;--warn:#fdf1d3;--bad:#b42222}\n"
    "@media(prefers-color-scheme:dark){:root{--page:#0d0d0d;--card:#1a1a19;--ink:#fff;--ink2:#c3c2b7;"
    "--muted:#96958d;--grid:#2c2c2a;--axis:#55544f;--edge:#ffffff1a;--s0:#3987e5;--s1:#199e70;--s2:#c98500;"
    "--s3:#008300;--s4:#9085e9;--s5:#e66767;--warn:#3a3118;--bad:#ff8a80}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;padding:24px 16px 48px;max-width:800px;background:var(--page);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",sans-serif}\n"
    "h1{font-size:22px;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:17px;margin:28px 0 8px}\n"
    "p{margin:4px 0 10px;color:var(--ink2);overflow-wrap:anywhere}\n"
    ".warn{background:var(--warn);color:var(--ink);border-radius:8px;padding:8px 12px}.bad{color:var(--bad)}\n"
    ".tiles{display:flex;flex-wrap:wrap;gap:12px;margin:16px 0}\n"
    ".tiles div{flex:1 1 110px;background:var(--card);border:1px solid var(--edge);border-radius:10px;"
    "padding:10px 14px}\n"
    ".tiles b{display:block;font-size:22px;font-weight:600;white-space:nowrap}"
    ".tiles span{color:var(--ink2);font-size:13px}\n"
    "figure{margin:16px 0;padding:14px 16px;background:var(--card);border:1px solid var(--edge);"
    "border-radius:10px}\n"
    "figcaption{color:var(--ink2);font-size:13px;margin-bottom:6px}figcaption b{color:var(--ink);font-size:15px}\n"
    "svg{display:block;width:100%;height:auto}\n"
    "svg text{font:12px system-ui,-apple-system,\"Segoe UI\",sans-serif;fill:var(--muted)}"
    "svg .key,svg .note{fill:var(--ink2)}svg .tick{font-variant-numeric:tabular-nums}\n"
    ".grid{stroke:var(--grid);fill:none}.axis{stroke:var(--axis);fill:none}\n"
    ".rule{stroke:var(--muted);stroke-dasharray:4 4;fill:none}.interval{stroke:var(--ink);stroke-width:1.5;"
    "fill:none}\n"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}.dot{stroke:var(--card);"
    "stroke-width:2}\n"
    ".s0{stroke:var(--s0)}.s1{stroke:var(--s1)}.s2{stroke:var(--s2)}.s3{stroke:var(--s3)}.s4{stroke:var(--s4)}"
    ".s5{stroke:var(--s5)}\n"
    ".f0{fill:var(--s0)}.f1{fill:var(--s1)}.f2{fill:var(--s2)}.f3{fill:var(--s3)}.f4{fill:var(--s4)}"
    ".f5{fill:var(--s5)}\n"
    ".line.dashed{stroke-dasharray:6 5}.line.dotted{stroke-dasharray:1 5}.line.dashdot{stroke-dasharray:9 5 1 5}\n"
    ".keys{display:flex;flex-wrap:wrap;gap:2px 16px;margin:8px 0 0;font-size:13px}.keys svg{display:inline-block;"
    "width:26px;height:10px;margin-right:6px}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:14px}\n"
    "th,td{padding:5px 10px 5px 0;text-align:left;border-bottom:1px solid var(--grid);vertical-align:top}\n"
    "th{color:var(--ink2);font-weight:500}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;"
    "white-space:nowrap}\n"
    "pre{overflow-x:auto;background:var(--card);border:1px solid var(--edge);border-radius:8px;padding:10px 12px;"
    "font-size:13px}code{overflow-wrap:anywhere}\n";

void svg_page_begin(FILE *out, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>",
          out);
    svg_escape(out, title);
    fputs("</title>\n<style>\n", out);
    fputs(style, out);
    fputs("</style>\n</head>\n<body>\n<h1>", out);
    svg_escape(out, title);
    fputs("</h1>\n", out);
}

void svg_page_end(FILE *out)
{
    fputs("</body>\n</html>\n", out);
}

size_t svg_character_bytes(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return len;
}

void svg_escape(FILE *out, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    while (s && *s) {
        size_t len = svg_character_bytes((const char *)s);

        if (len == 0)
            fputc('?', out);
        else if (*s == '&')
            fputs("&amp;", out);
        else if (*s == '<')
            fputs("&lt;", out);
        else if (*s == '>')
            fputs("&gt;", out);
        else if (*s == '"')
            fputs("&quot;", out);
        else if (*s == '\'')
            fputs("&#39;", out);
        else if (*s < 0x20 || *s == 0x7f)
            fputc(' ', out);
        else
            fwrite(s, 1, len, out);
        s += len ? len : 1;
    }
}

void svg_put(FILE *out, const char *before, const char *text, const char *after)
{
    fputs(before, out);
    svg_escape(out, text);
    fputs(after, out);
}

void svg_put_row(FILE *out, const char *heading, const char *name, const char *value)
{
    fprintf(out, "<tr>%s", heading);
    svg_put(out, "", name, "</th><td>");
    svg_put(out, "", value, "</td></tr>\n");
}
