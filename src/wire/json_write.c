/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/json_write.h"

#include <errno.h>
#include <stdio.h>

#include "base/b64.h"
#include "base/utf8.h"

static void json_append(struct json *j, const char *p, size_t n)
{
	if (j->err == 0)
		j->err = buf_add(j->out, p, n);
}

static uint32_t level(const struct json *j)
{
	return 1u << (j->depth - 1);
}

/* Write a comma before a value or key, unless it is the first of its level. */
static void separate(struct json *j)
{
	if (j->depth == 0)
		return;
	if (j->filled & level(j))
		json_append(j, ",", 1);
	j->filled |= level(j);
}

/* Called for every value: in an object a key is required, in an array none is allowed. */
static void before_value(struct json *j)
{
	bool array = j->depth > 0 && (j->arrays & level(j));

	if (j->err)
		return;
	if (j->depth == 0 ? (j->filled & 1) != 0 : j->keyed == array) {
		j->err = -EINVAL;
		return;
	}
	if (array)
		separate(j);
	j->keyed = false;
}

/* The top level holds one value; bit 0 of `filled` marks it once depth is 0 again. */
static void after_value(struct json *j)
{
	if (j->depth == 0)
		j->filled = 1;
}

void json_init(struct json *j, struct buf *out)
{
	*j = (struct json){ .out = out };
}

int json_done(const struct json *j)
{
	if (j->err)
		return j->err;
	return j->depth > 0 || !j->filled ? -EINVAL : 0;
}

static void open_level(struct json *j, bool array)
{
	before_value(j);
	if (j->err == 0 && j->depth == JSON_DEPTH)
		j->err = -EINVAL;
	if (j->err)
		return;
	json_append(j, array ? "[" : "{", 1);
	j->depth++;
	j->filled &= ~level(j);
	j->arrays = array ? j->arrays | level(j) : j->arrays & ~level(j);
}

void json_obj(struct json *j)
{
	open_level(j, false);
}

void json_arr(struct json *j)
{
	open_level(j, true);
}

void json_end(struct json *j)
{
	if (j->err == 0 && (j->depth == 0 || j->keyed))
		j->err = -EINVAL;
	if (j->err)
		return;
	json_append(j, j->arrays & level(j) ? "]" : "}", 1);
	j->depth--;
	after_value(j);
}

/* Number of leading bytes that need no escape. C1 is U+0080 to U+009F: 0xc2, then below 0xa0. */
static size_t plain_run(struct str s)
{
	size_t i = 0;

	for (; i < s.n; i++) {
		uint8_t c = (uint8_t)s.p[i];

		if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f)
			break;
		if (c == 0xc2 && i + 1 < s.n && (uint8_t)s.p[i + 1] < 0xa0)
			break;
	}
	return i;
}

static void add_hex4(struct json *j, uint8_t c)
{
	static const char digits[] = "0123456789abcdef";
	char esc[6] = { '\\', 'u', '0', '0', digits[c >> 4], digits[c & 15] };

	json_append(j, esc, sizeof esc);
}

/* Escape one character. Returns its bytes. */
static size_t add_escaped(struct json *j, struct str s)
{
	switch (s.p[0]) {
	case '"':
		json_append(j, "\\\"", 2);
		return 1;
	case '\\':
		json_append(j, "\\\\", 2);
		return 1;
	case '\n':
		json_append(j, "\\n", 2);
		return 1;
	case '\t':
		json_append(j, "\\t", 2);
		return 1;
	case '\r':
		json_append(j, "\\r", 2);
		return 1;
	case '\xc2':
		add_hex4(j, (uint8_t)s.p[1]);
		return 2;
	default:
		add_hex4(j, (uint8_t)s.p[0]);
		return 1;
	}
}

static void add_quoted(struct json *j, struct str s)
{
	json_append(j, "\"", 1);
	while (s.n > 0 && j->err == 0) {
		size_t n = plain_run(s);

		if (n > 0)
			json_append(j, s.p, n);
		else
			n = add_escaped(j, s);
		s.p += n;
		s.n -= n;
	}
	json_append(j, "\"", 1);
}

void json_key(struct json *j, const char *key)
{
	if (j->err == 0 && (j->depth == 0 || j->keyed || (j->arrays & level(j))))
		j->err = -EINVAL;
	if (j->err)
		return;
	separate(j);
	add_quoted(j, str_of(key));
	json_append(j, ":", 1);
	j->keyed = true;
}

static void add_b64(struct json *j, struct str value)
{
	json_append(j, "{\"b64\":\"", 8);
	if (j->err == 0)
		j->err = b64_encode(j->out, value);
	json_append(j, "\"}", 2);
}

void json_str(struct json *j, struct str value)
{
	before_value(j);
	if (utf8_valid(value))
		add_quoted(j, value);
	else
		add_b64(j, value);
	after_value(j);
}

void json_c(struct json *j, const char *value)
{
	if (value)
		json_str(j, str_of(value));
	else
		json_nil(j);
}

static void add_number(struct json *j, uint64_t value, bool minus)
{
	char digits[24];
	size_t at = sizeof digits;

	do
		digits[--at] = (char)('0' + value % 10);
	while (value /= 10);
	if (minus)
		digits[--at] = '-';
	json_raw(j, (struct str){ digits + at, sizeof digits - at });
}

void json_i64(struct json *j, int64_t value)
{
	add_number(j, value < 0 ? -(uint64_t)value : (uint64_t)value, value < 0);
}

void json_u64(struct json *j, uint64_t value)
{
	add_number(j, value, false);
}

void json_bool(struct json *j, bool value)
{
	json_raw(j, value ? STR("true") : STR("false"));
}

void json_nil(struct json *j)
{
	json_raw(j, STR("null"));
}

void json_raw(struct json *j, struct str text)
{
	before_value(j);
	json_append(j, text.p, text.n);
	after_value(j);
}

void json_put_obj(struct json *j, const char *key)
{
	json_key(j, key);
	json_obj(j);
}

void json_put_arr(struct json *j, const char *key)
{
	json_key(j, key);
	json_arr(j);
}

void json_put_str(struct json *j, const char *key, struct str value)
{
	json_key(j, key);
	json_str(j, value);
}

void json_put_c(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_c(j, value);
}

void json_put_i64(struct json *j, const char *key, int64_t value)
{
	json_key(j, key);
	json_i64(j, value);
}

void json_put_u64(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_u64(j, value);
}

void json_put_bool(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	json_bool(j, value);
}

void json_put_nil(struct json *j, const char *key)
{
	json_key(j, key);
	json_nil(j);
}

void json_put_raw(struct json *j, const char *key, struct str text)
{
	json_key(j, key);
	json_raw(j, text);
}

void json_put_text(struct json *j, const char *key, const char *value)
{
	json_put_c(j, key, value && value[0] ? value : NULL);
}

void json_put_ms(struct json *j, const char *key, uint64_t us)
{
	char text[32];

	(void)snprintf(text, sizeof text, "%llu.%03u", (unsigned long long)(us / 1000),
		       (unsigned)(us % 1000));
	json_put_raw(j, key, str_of(text));
}
