"""The hand-made site of difficult pages: every place a URL may hide, every way it may be written.

Decides: what real documentation has too little of: legacy charsets in queries, references, odd endings, redirects,
bodies of the wrong type. Each page is written down as bytes, as a server would send them.

Invariants: links that a reader of the HTML standard does not see point under /unseen/, where any path exists: a
request for one shows in the server's log. The truth is not written here: oracle.py derives it from the same bytes.
Leaves to others: the server's configuration (servers.py).
"""

# Directives of the site's server block. Every /echo and /unseen answers 200, so each spelling is a page of its own.
NGINX = """
location /echo { default_type text/html; return 200 "<!doctype html><title>echo</title><p>$request_uri"; }
location /unseen { default_type text/html; return 200 "<!doctype html><p>nobody should come here"; }
location = /gone { return 410; }
location = /forbidden { return 403; }
location = /broken { return 500; }
location = /empty { default_type text/html; return 200 ""; }
location = /teapot { return 418 "short and stout"; }
location = /r301 { return 301 $scheme://$http_host/echo/r301; }
location = /r302 { return 302 /echo/r302?a=b#fragment; }
location = /r303 { return 303 /echo/../echo/r303; }
location = /r307 { return 307 $scheme://$http_host/r308; }
location = /r308 { return 308 /r301; }
location = /loop { return 302 /loop2; }
location = /loop2 { return 302 /loop; }
location = /self { return 301 /self; }
location = /into-closed { return 302 /closed/by-redirect.html; }
location = /to-ftp { return 302 ftp://corners.test/file; }
location = /koi8.html { charset koi8-r; alias %(koi8)s; }
location = /plain.txt { default_type text/plain; alias %(markup)s; }
location = /octets { types { } default_type application/octet-stream; alias %(markup)s; }
location = /xhtml { types { } default_type application/xhtml+xml; alias %(xhtml)s; }
location = /upper { types { } default_type "TEXT/HTML;Charset=UTF-8"; alias %(upper)s; }
location /closed/ { default_type text/html; return 200 "<!doctype html><p>closed"; }
"""

# Served through a location of their own above.
FILES = {
    "koi8": "<!doctype html><a href='/echo/koi8?q=мир'>the query is koi8-r, by the server's word</a>".encode("koi8-r"),
    "markup": b"<!doctype html><a href=/unseen/not-html>x</a>",
    "xhtml": b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body><a href="/echo/xhtml"/></body></html>',
    "upper": "<!doctype html><meta charset=iso-8859-1><a href='/echo/upper?ä'>the header's charset wins</a>".encode(),
}


def pages(origin: str, www: str) -> dict:
    """{path: bytes} of the pages; `origin` and `www` are the http origins of corners.test and www.corners.test."""
    host = origin.removeprefix("http://")
    made = {
        "/places.html": f"""<!doctype html><html><head><meta charset=utf-8><title>Places</title>
<link rel=canonical href=/echo/canonical><link rel="Next prefetch" href=/echo/next><link rel=prev href=/echo/prev>
<link rel=alternate href="/echo/alternate" type=application/atom+xml><link rel=stylesheet href=/unseen/style.css>
<link rel=icon href=/unseen/icon><link href=/unseen/no-rel><script src=/unseen/script.js></script>
<meta http-equiv=Refresh content="3600; URL='/echo/refresh'"></head><body>
<a href=/echo/a>a</a><map name=m><area href=/echo/area></map><img src=/unseen/image.png srcset="/unseen/2x.png 2x">
<iframe src=/echo/iframe><a href=/unseen/in-iframe>x</a></iframe><noscript><a href=/echo/noscript>n</a></noscript>
<a name=no-href>x</a><a href>the page itself</a><a href="">again</a><a href="#part">and again</a>
<form action=/unseen/form><input type=submit formaction=/unseen/button></form><blockquote cite=/unseen/cite></blockquote>
<video src=/unseen/video poster=/unseen/poster></video><object data=/unseen/o></object>
<a ping=/unseen/ping href='/echo/ping'>p</a><a data-href=/unseen/data>x</a></body></html>""",
        "/frames.html": """<!doctype html><html><head><title>Frames</title></head>
<frameset cols="50%,50%"><frame src=/echo/frame1><frame src="/echo/frame2"></frameset></html>""",
        "/hidden.html": """<!doctype html><title>No <a href=/unseen/title>links</title><meta charset=utf-8>
<!-- <a href=/unseen/comment>x</a> --><!-- > <a href=/unseen/comment2>x</a> --!><a href=/echo/after-bang>y</a>
<!--><a href=/echo/short-comment>y</a><!---><a href=/echo/short-comment2>y</a>
<script>document.write("<a href=/unseen/script>x</a>"); <!-- <script> </script> <a href=/unseen/double-escaped> --></script>
<a href=/echo/after-script>y</a><style>a{} <a href=/unseen/style>x</a></style>
<textarea><a href=/unseen/textarea>x</a></textarea><xmp><a href=/unseen/xmp>x</a></xmp>
<noembed><a href=/unseen/noembed>x</a></noembed><noframes><a href=/unseen/noframes>x</a></noframes>
<p title="<a href=/unseen/attribute>x</a>"><p title='>'><a href=/echo/after-quote>y</a>
<?php echo "<a href=/unseen/bogus"; ?><a href=/echo/after-bogus>y</a></ a href=/unseen/end-tag><a
href
=
"/echo/newlines"
>y</a><a/href=/echo/slash>y</a><a title=x/href=/unseen/in-value>x</a><a href=/echo/first href=/unseen/second>y</a>
<A HREF=/echo/upper-tag>y</A><plaintext><a href=/unseen/plaintext>x</a>""",
        "/unclosed.html": """<!doctype html><a href=/echo/unclosed-element><a href=/echo/whole>y</a><a href="/unseen/no-end>x""",
        "/spellings.html": f"""<!doctype html><meta charset=utf-8><a href="/echo/amp?a=1&amp;b=2">&amp;</a>
<a href="/echo/amp?a=1&copy=2&lt;&notit;&#x41;&#66&#x80;">references</a><a href=" /echo/spaces	around ">s</a>
<a href="/echo/a b c">s</a><a href="/echo/ta	b/new
line">t</a><a href='\\echo\\backslash'>b</a><a href="/x/../echo/./dots/../d%2e%2e/y">d</a><a href="/../../echo/above">d</a>
<a href="/echo/%7Euser/~user">tilde</a><a href="/echo/%2f%2F%20">case</a><a href="/echo/&quot;&lt;&gt;`{{}}|^[]\\;,@:$!*'()">p</a>
<a href="/echo/q?&quot;'&lt;&gt;`{{}}|^[]\\;,@:/?$!*()">q</a><a href="/echo/üñï/日本?q=ü#frag">non-ASCII</a>
<a href="/echo/empty?">empty query</a><a href="/echo/empty">none</a><a href="/echo/empty?#x">both</a><a href="?own=query">own</a>
<a href="HTTP://{host.upper()}/echo/upper-host">h</a><a href="//{host}/echo/scheme-relative">s</a><a href="http:echo/relative">r</a>
<a href="http://user:secret@{host}/echo/credentials">c</a><a href="http:\\\\{host}\\echo\\slashes">b</a>
<a href="{www}/echo/www">www</a><a href="mailto:a@corners.test">m</a><a href="javascript:void(0)">j</a><a href="data:text/html,x">d</a>
<a href="http://[::bad/">bad</a><a href="http://exa mple.test/">bad</a><a href="http://corners.test:99999/">bad</a>
<a href="ftp://corners.test/">f</a><a href="http://nowhere.test/">no such name</a><a href="http://%63orners.test:{host.split(':')[1]}/echo/escaped-host">e</a>
<a href="/echo/;a=1;b">;</a><a href="/echo//double//slash">/</a><a href=/echo/unquoted?a=b>u</a>""",
        "/base.html": """<!doctype html><head><base target=_top><base href="/echo/base/x?y#z"><base href="/unseen/second/"></head>
<a href=relative>r</a><a href="?q">q</a><a href="../up">u</a><a href="#f">f</a>""",
        "/base-late.html": """<!doctype html><a href=late-before>b</a><base href="/echo/late/"><a href=late-after>a</a>""",
        "/base-bad.html": """<!doctype html><base href="http://[bad/"><a href=echo/base-bad>b</a><base href=/unseen/>""",
        "/refresh.html": """<!doctype html><meta charset=utf-8><meta http-equiv=refresh content="0;/echo/refresh-bare">
<meta http-equiv=refresh content="  5.5 ,  url = /echo/refresh-comma"><meta http-equiv=refresh content='1; url="/echo/refresh-quoted"junk'>
<meta http-equiv=refresh content="url=/unseen/refresh-no-time"><meta http-equiv=refresh content="x;url=/unseen/refresh-x">
<meta name=refresh content="0;url=/unseen/refresh-name">""",
        "/windows-1251.html": "<!doctype html><meta charset=windows-1251><a href='/echo/русский?q=русский'>q</a>".encode("cp1251"),
        "/latin1.html": "<!doctype html><a href='/echo/é?q=é€'>no charset said: windows-1252</a>".encode("cp1252"),
        "/shift-jis.html": """<!doctype html><meta http-equiv=content-type content="text/html; charset=Shift_JIS">
<a href='/echo/sjis?日本=ソ&x=ü'>q</a>""".encode("cp932", "xmlcharrefreplace"),
        "/euc-kr.html": "<!doctype html><meta charset=euc-kr><a href='/echo/한국?q=한국어'>q</a>".encode("euc-kr"),
        "/utf-16.html": "<!doctype html><a href='/echo/utf16?q=ü'>the mark says it</a>".encode("utf-16"),
        "/bom.html": b"\xef\xbb\xbf" + "<!doctype html><meta charset=koi8-r><a href='/echo/bom?q=ü'>q</a>".encode(),
        "/file name.html": "<!doctype html><title>A space in its name</title>",
        "/ümlaut.html": "<!doctype html><title>Not ASCII</title>",
        "/archive.gz": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00",
        "/zero.html": b"",
        "/nul.html": b"<!doctype html>\0<a href=/echo/nul\0x>\xff\xfe</a>\0<a\0 href=/unseen/other-element>",
        "/large.html": "<!doctype html><meta charset=utf-8>" + "<p>much text</p>\n" * 20000 + "<a href=/echo/after-much>y</a>",
        "/many.html": "<!doctype html>" + "".join(f"<a href=/echo/many/{n % 300}>{n}</a>" for n in range(9000)),
    }
    targets = sorted(made) + [
        "/gone", "/forbidden", "/broken", "/empty", "/teapot", "/r301", "/r302", "/r303", "/r307", "/loop", "/self",
        "/into-closed", "/to-ftp", "/koi8.html", "/plain.txt", "/octets", "/xhtml", "/upper", "/closed/linked.html",
        "/missing.html", "/folder", "/around.html",
    ]  # fmt: skip
    made["/folder/index.html"] = "<!doctype html><a href=../places.html>up</a><a href=./>here</a>"
    links = "".join(f'<li><a href="{target}">{target}</a>\n' for target in targets)
    made["/index.html"] = f"<!doctype html><meta charset=utf-8><title>Corners</title><ul>{links}</ul>"
    return {path: text if isinstance(text, bytes) else text.encode() for path, text in made.items()}
