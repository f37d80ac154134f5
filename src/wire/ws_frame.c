/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/ws_frame.h"

#include <errno.h>

#include "base/b64.h"
#include "base/sha1.h"
#include "base/utf8.h"

enum {
	WS_FIN = 0x80,
	WS_RESERVED = 0x70,
	WS_OPCODE = 0x0f,
	WS_MASKED = 0x80,
	WS_LENGTH = 0x7f,
	WS_LENGTH_16 = 126,
	WS_LENGTH_64 = 127,
	WS_MASK = 4,
	WS_KEY = 16,
};

void ws_reader_init(struct ws_reader *r, bool masked)
{
	*r = (struct ws_reader){ .masked = masked,
				 .data = BUF_INIT(LIMIT_WS_MESSAGE),
				 .control = BUF_INIT(WS_CONTROL) };
}

void ws_reader_done(struct ws_reader *r)
{
	buf_done(&r->data);
	buf_done(&r->control);
}

static int bad(struct ws_reader *r, const char *why)
{
	r->code = WS_PROTOCOL_ERROR;
	r->why = why;
	return -EBADMSG;
}

static int too_big(struct ws_reader *r)
{
	r->code = WS_TOO_BIG;
	r->why = "the message is too large";
	return -E2BIG;
}

static bool is_control(int opcode)
{
	return opcode >= WS_CLOSE;
}

/* Bytes that the head needs, as far as it is known. */
static size_t head_size(const struct ws_reader *r)
{
	size_t n = 2;

	if (r->head_n < n)
		return n;
	if ((r->head[1] & WS_LENGTH) == WS_LENGTH_16)
		n += 2;
	else if ((r->head[1] & WS_LENGTH) == WS_LENGTH_64)
		n += 8;
	return n + (r->head[1] & WS_MASKED ? WS_MASK : 0);
}

static uint64_t length_of(const unsigned char *head)
{
	unsigned kind = head[1] & WS_LENGTH;
	size_t bytes = kind == WS_LENGTH_64 ? 8 : 2;
	uint64_t n = 0;

	if (kind < WS_LENGTH_16)
		return kind;
	for (size_t i = 0; i < bytes; i++)
		n = n << 8 | head[2 + i];
	return n;
}

/* RFC 6455 5.2: the shortest form must be used. */
static bool is_shortest(const unsigned char *head, uint64_t n)
{
	unsigned kind = head[1] & WS_LENGTH;

	return kind == WS_LENGTH_16 ? n >= WS_LENGTH_16 : kind != WS_LENGTH_64 || n > UINT16_MAX;
}

/* The two bytes that every head begins with. */
static int check_start(struct ws_reader *r)
{
	int opcode = r->head[0] & WS_OPCODE;
	bool fin = r->head[0] & WS_FIN;

	if (r->head[0] & WS_RESERVED)
		return bad(r, "a reserved bit is set");
	if (opcode > WS_PONG || (opcode > WS_BINARY && opcode < WS_CLOSE))
		return bad(r, "the opcode is unknown");
	if (!(r->head[1] & WS_MASKED) != !r->masked)
		return bad(r, r->masked ? "a frame is not masked" : "a frame is masked");
	if (is_control(opcode) && (!fin || (r->head[1] & WS_LENGTH) > WS_CONTROL))
		return bad(r, "a control frame is too long or in pieces");
	if (opcode == WS_CONTINUATION && r->message == 0)
		return bad(r, "a continuation has no beginning");
	if ((opcode == WS_TEXT || opcode == WS_BINARY) && r->message)
		return bad(r, "a message begins inside another one");
	return 0;
}

static int begin_frame(struct ws_reader *r)
{
	uint64_t n = length_of(r->head);
	size_t size = head_size(r);

	if (!is_shortest(r->head, n))
		return bad(r, "a length is written too long");
	r->opcode = r->head[0] & WS_OPCODE;
	r->fin = r->head[0] & WS_FIN;
	if (!is_control(r->opcode) && n > LIMIT_WS_MESSAGE - r->data.len)
		return too_big(r);
	if (r->masked)
		memcpy(r->mask, r->head + size - WS_MASK, WS_MASK);
	if (!is_control(r->opcode) && r->opcode != WS_CONTINUATION)
		r->message = r->opcode;
	r->left = n;
	r->at = 0;
	r->in_frame = true;
	return 0;
}

static int head_byte(struct ws_reader *r, unsigned char c)
{
	r->head[r->head_n++] = c;
	if (r->head_n == 2 && check_start(r) < 0)
		return -EBADMSG;
	return r->head_n >= 2 && r->head_n == head_size(r) ? begin_frame(r) : 0;
}

static int payload(struct ws_reader *r, struct str *in)
{
	struct buf *to = is_control(r->opcode) ? &r->control : &r->data;
	size_t n = in->n < r->left ? in->n : (size_t)r->left;
	size_t from = to->len;
	int err = buf_add(to, in->p, n);

	if (err < 0)
		return err;
	if (r->masked)
		for (size_t i = 0; i < n; i++)
			to->data[from + i] = (char)((unsigned char)to->data[from + i] ^
						    r->mask[(r->at + i) % WS_MASK]);
	r->at += n;
	r->left -= n;
	in->p += n;
	in->n -= n;
	return 0;
}

static int not_utf8(struct ws_reader *r)
{
	r->code = WS_NOT_UTF8;
	r->why = "text is not UTF-8";
	return -EBADMSG;
}

/* A frame is complete: its message, or 0 if more frames of the message follow. */
static int end_frame(struct ws_reader *r, struct str *ret)
{
	int opcode = r->opcode;

	r->in_frame = false;
	r->head_n = 0;
	if (is_control(opcode)) {
		*ret = buf_str(&r->control);
		r->clear_control = true;
		if (opcode == WS_CLOSE && ws_close_code(*ret) < 0)
			return bad(r, "the close code is not valid");
		return opcode;
	}
	if (!r->fin)
		return 0;
	opcode = r->message;
	r->message = 0;
	r->clear_data = true;
	*ret = buf_str(&r->data);
	return opcode == WS_TEXT && !utf8_valid(*ret) ? not_utf8(r) : opcode;
}

int ws_reader_next(struct ws_reader *r, struct str *in, struct str *ret)
{
	int err = 0;

	*ret = STR_NONE;
	if (r->clear_data)
		buf_clear(&r->data);
	if (r->clear_control)
		buf_clear(&r->control);
	r->clear_data = r->clear_control = false;
	for (;;) {
		if (r->code)
			return -EBADMSG;
		if (r->in_frame && r->left == 0) {
			err = end_frame(r, ret);
			if (err)
				return err;
			continue;
		}
		if (in->n == 0)
			return 0;
		if (r->in_frame) {
			err = payload(r, in);
		} else {
			err = head_byte(r, (unsigned char)in->p[0]);
			in->p++;
			in->n--;
		}
		if (err < 0)
			return err;
	}
}

int ws_close_code(struct str p)
{
	int code;

	if (p.n == 0)
		return WS_NO_CODE;
	if (p.n == 1 || !utf8_valid((struct str){ p.p + 2, p.n - 2 }))
		return -EBADMSG;
	code = (unsigned char)p.p[0] << 8 | (unsigned char)p.p[1];
	if ((code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) ||
	    (code >= 3000 && code <= 4999))
		return code;
	return -EBADMSG;
}

static size_t put_length(unsigned char *head, uint64_t n)
{
	size_t bytes = n < WS_LENGTH_16 ? 0 : n <= UINT16_MAX ? 2 : 8;

	head[1] = (unsigned char)(bytes == 0 ? n : bytes == 2 ? WS_LENGTH_16 : WS_LENGTH_64);
	for (size_t i = 0; i < bytes; i++)
		head[2 + i] = (unsigned char)(n >> 8 * (bytes - 1 - i));
	return 2 + bytes;
}

int ws_put(struct buf *b, int opcode, struct str text, const unsigned char *mask)
{
	unsigned char head[2 + 8 + WS_MASK] = { (unsigned char)(WS_FIN | opcode) };
	size_t n = put_length(head, text.n), before = b->len, from;
	int r;

	if (mask) {
		head[1] |= WS_MASKED;
		memcpy(head + n, mask, WS_MASK);
		n += WS_MASK;
	}
	r = buf_reserve(b, n + text.n);
	if (r == 0)
		r = buf_add(b, head, n);
	from = b->len;
	if (r == 0)
		r = buf_add_str(b, text);
	if (r < 0) {
		buf_cut(b, before);
		return r;
	}
	for (size_t i = 0; mask && i < text.n; i++)
		b->data[from + i] = (char)((unsigned char)b->data[from + i] ^ mask[i % WS_MASK]);
	return 0;
}

int ws_put_close(struct buf *b, int code, struct str reason, const unsigned char *mask)
{
	char text[WS_CONTROL] = { (char)(code >> 8), (char)code };
	size_t n = reason.n < sizeof text - 2 ? reason.n : sizeof text - 2;

	if (n)
		memcpy(text + 2, reason.p, n);
	return ws_put(b, WS_CLOSE, (struct str){ text, 2 + n }, mask);
}

static unsigned char hex_byte(const char *p)
{
	unsigned high = (unsigned)(p[0] <= '9' ? p[0] - '0' : p[0] - 'a' + 10);
	unsigned low = (unsigned)(p[1] <= '9' ? p[1] - '0' : p[1] - 'a' + 10);

	return (unsigned char)(high << 4 | low);
}

int ws_accept_key(struct str key, char out[WS_ACCEPT])
{
	static const struct str salt = STR("258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
	auto_done(buf_done) struct buf b = BUF_INIT(64);
	char hex[SHA1_HEX], raw[SHA1_SIZE];
	struct sha1 s;

	if (b64_decode(&b, key) < 0 || b.len != WS_KEY)
		return -EBADMSG;
	sha1_init(&s);
	sha1_add(&s, key.p, key.n);
	sha1_add(&s, salt.p, salt.n);
	sha1_end(&s, hex);
	for (size_t i = 0; i < sizeof raw; i++)
		raw[i] = (char)hex_byte(hex + 2 * i);
	buf_clear(&b);
	if (b64_encode(&b, (struct str){ raw, sizeof raw }) < 0)
		return -ENOMEM;
	return str_copy(out, WS_ACCEPT, buf_str(&b)) ? 0 : -EBADMSG;
}
