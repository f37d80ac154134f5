/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tar.h"

#include <stdio.h>
#include <string.h>

#include "wire/tar_header.h"

enum {
	HAS_PATH = 1,
	HAS_LINK = 2,
	HAS_SIZE = 4,
	HAS_MTIME = 8,
	HAS_UID = 16,
	HAS_GID = 32,
	HAS_RECORDS = 64
};

void tar_reader_init(struct tar_reader *r)
{
	memset(r, 0, sizeof *r);
	r->ext.max = LIMIT_PAX;
	r->records.max = LIMIT_PAX;
	r->entry.path = r->path;
	r->entry.link = r->link;
}

void tar_reader_done(struct tar_reader *r)
{
	buf_done(&r->ext);
	buf_done(&r->records);
}

static int bad(struct tar_reader *r, int error, const char *why)
{
	r->state = TAR_S_BAD;
	(void)snprintf(r->why, sizeof r->why, "%s", why);
	return error;
}

static int refuse_type(struct tar_reader *r, char type)
{
	switch (type) {
	case '3':
		return bad(r, -EOPNOTSUPP, "is a character device");
	case '4':
		return bad(r, -EOPNOTSUPP, "is a block device");
	case '6':
		return bad(r, -EOPNOTSUPP, "is a fifo");
	case 'S':
		return bad(r, -EOPNOTSUPP, "is a sparse file");
	default:
		r->state = TAR_S_BAD;
		(void)snprintf(r->why, sizeof r->why, "has the unknown type 0x%02x",
			       (unsigned char)type);
		return -EOPNOTSUPP;
	}
}

/* Two's complement, big endian; the top bit of the first byte is the marker. */
static bool base256(const unsigned char *p, size_t n, int64_t *ret)
{
	int64_t v = (p[0] & 0x40) ? -1 : 0;

	v = v * 64 + (p[0] & 0x3f);
	for (size_t i = 1; i < n; i++) {
		if (__builtin_mul_overflow(v, 256, &v))
			return false;
		v += p[i];
	}
	*ret = v;
	return true;
}

/* A header field: octal digits between spaces and NULs, or base-256. */
static bool number(const unsigned char *p, size_t n, int64_t *ret)
{
	int64_t v = 0;
	size_t i = 0;

	if (p[0] & 0x80)
		return base256(p, n, ret);
	while (i < n && p[i] == ' ')
		i++;
	for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
		v = v * 8 + (p[i] - '0');
	for (; i < n; i++)
		if (p[i] != ' ' && p[i] != '\0')
			return false;
	*ret = v;
	return true;
}

static bool natural(const unsigned char *p, size_t n, uint64_t *ret)
{
	int64_t v;

	if (!number(p, n, &v) || v < 0)
		return false;
	*ret = (uint64_t)v;
	return true;
}

/* A decimal number at the front of *s, at most max. */
static bool decimal(struct str *s, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;

	for (; i < s->n && s->p[i] >= '0' && s->p[i] <= '9'; i++)
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(s->p[i] - '0'), &v) || v > max)
			return false;
	*ret = v;
	s->p += i;
	s->n -= i;
	return i > 0;
}

static bool whole_decimal(struct str s, uint64_t max, uint64_t *ret)
{
	return decimal(&s, max, ret) && s.n == 0;
}

/* "[-]seconds[.fraction]", to a time whose nanoseconds are positive. */
static bool pax_time(struct str s, int64_t *ret_s, uint32_t *ret_ns)
{
	bool minus = s.n > 0 && s.p[0] == '-';
	uint64_t sec;
	uint32_t ns = 0, unit = 100000000;

	if (minus)
		s = (struct str){ s.p + 1, s.n - 1 };
	if (!decimal(&s, INT64_MAX / 2, &sec))
		return false;
	if (s.n > 0 && s.p[0] != '.')
		return false;
	for (size_t i = 1; i < s.n; i++, unit /= 10) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		ns += unit * (uint32_t)(s.p[i] - '0');
	}
	*ret_s = minus ? -(int64_t)sec : (int64_t)sec;
	*ret_ns = ns;
	if (minus && ns) {
		*ret_s -= 1;
		*ret_ns = 1000000000 - ns;
	}
	return true;
}

/* "LENGTH KEY=VALUE\n", where LENGTH counts the whole record. 1, 0 at the end, or -EBADMSG. */
static int record_next(struct str *rest, struct str *ret_key, struct str *ret_value)
{
	struct str body = *rest;
	const char *eq;
	uint64_t len;

	if (rest->n == 0)
		return 0;
	if (!decimal(&body, rest->n, &len) || body.n == 0 || body.p[0] != ' ')
		return -EBADMSG;
	body = (struct str){ body.p + 1, body.n - 1 };
	/* The record includes the digits and the space, and needs a key, = and \n. */
	if (len < (size_t)(body.p - rest->p) + 3)
		return -EBADMSG;
	body.n = len - (size_t)(body.p - rest->p);
	if (body.p[body.n - 1] != '\n')
		return -EBADMSG;
	body.n--;
	eq = memchr(body.p, '=', body.n);
	if (!eq || eq == body.p)
		return -EBADMSG;
	*ret_key = (struct str){ body.p, (size_t)(eq - body.p) };
	*ret_value = (struct str){ eq + 1, body.n - ret_key->n - 1 };
	*rest = (struct str){ rest->p + len, rest->n - len };
	return 1;
}

static int take_path(struct tar_reader *r, char dst[LIMIT_PATH], struct str value, unsigned bit)
{
	if (!str_is_text(value))
		return bad(r, -EBADMSG, "has a name with a zero byte");
	if (!str_copy(dst, LIMIT_PATH, value))
		return bad(r, -E2BIG, "has a name that is too long");
	r->has |= bit;
	return 0;
}

static int take_record(struct tar_reader *r, struct str key, struct str value)
{
	struct tar_entry *o = &r->over;
	bool ok = true;

	if (str_is(key, "path"))
		return take_path(r, r->path, value, HAS_PATH);
	if (str_is(key, "linkpath"))
		return take_path(r, r->link, value, HAS_LINK);
	if (str_starts(key, STR("GNU.sparse.")))
		return bad(r, -EOPNOTSUPP, "is a sparse file");
	if (str_is(key, "size")) {
		ok = whole_decimal(value, INT64_MAX, &o->size);
		r->has |= HAS_SIZE;
	} else if (str_is(key, "mtime")) {
		ok = pax_time(value, &o->mtime_s, &o->mtime_ns);
		r->has |= HAS_MTIME;
	} else if (str_is(key, "uid")) {
		ok = whole_decimal(value, UINT32_MAX, &o->uid);
		r->has |= HAS_UID;
	} else if (str_is(key, "gid")) {
		ok = whole_decimal(value, UINT32_MAX, &o->gid);
		r->has |= HAS_GID;
	}
	return ok ? 0 : bad(r, -EBADMSG, "malformed value in an extended header");
}

static int take_records(struct tar_reader *r)
{
	struct str rest = buf_str(&r->ext), key, value;
	struct buf swap;
	int k;

	while ((k = record_next(&rest, &key, &value)) > 0) {
		int e = take_record(r, key, value);

		if (e < 0)
			return e;
	}
	if (k < 0)
		return bad(r, k, "malformed extended header");
	swap = r->records;
	r->records = r->ext;
	r->ext = swap;
	r->has |= HAS_RECORDS;
	return 0;
}

/* Dates and owners in a global header are only defaults: ignore them. */
static int check_global(struct tar_reader *r)
{
	struct str rest = buf_str(&r->ext), key, value;
	int k;

	while ((k = record_next(&rest, &key, &value)) > 0)
		if (str_is(key, "path") || str_is(key, "linkpath") || str_is(key, "size") ||
		    str_starts(key, STR("GNU.sparse.")))
			return bad(r, -EOPNOTSUPP, "global header that names or sizes entries");
	return k < 0 ? bad(r, k, "malformed global header") : 0;
}

static int ext_done(struct tar_reader *r)
{
	struct str name = { r->ext.data, 0 };

	if (r->ext_type == 'x')
		return take_records(r);
	if (r->ext_type == 'g')
		return check_global(r);
	name.n = r->ext.data ? strnlen(r->ext.data, r->ext.len) : 0;
	/* A pax name wins over a GNU name, in either order. */
	if (r->has & (r->ext_type == 'L' ? HAS_PATH : HAS_LINK))
		return r->has & HAS_RECORDS ? 0 : bad(r, -EBADMSG, "two long names for one entry");
	if (r->ext_type == 'L')
		return take_path(r, r->path, name, HAS_PATH);
	return take_path(r, r->link, name, HAS_LINK);
}

static int begin_data(struct tar_reader *r, enum tar_state state, uint64_t size)
{
	if (size > INT64_MAX - TAR_BLOCK)
		return bad(r, -EBADMSG, "has an impossible size");
	r->left = size;
	r->pad = (TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK;
	r->state = state;
	return 0;
}

static int begin_ext(struct tar_reader *r, char type, uint64_t size)
{
	if (size > (type == 'x' || type == 'g' ? (uint64_t)LIMIT_PAX : (uint64_t)LIMIT_PATH))
		return bad(r, -E2BIG, "extended header is too long");
	if (type == 'x' && (r->has & HAS_RECORDS))
		return bad(r, -EBADMSG, "two extended headers for one entry");
	r->ext_type = type;
	buf_clear(&r->ext);
	return begin_data(r, TAR_S_EXT, size);
}

static bool checksum_ok(const unsigned char *block, const struct tar_header *h)
{
	uint64_t want, sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += block[i];
	for (size_t i = 0; i < sizeof h->sum; i++)
		sum += ' ' - (uint64_t)h->sum[i];
	return natural(h->sum, sizeof h->sum, &want) && want == sum;
}

static struct str text_field(const unsigned char *p, size_t size)
{
	return (struct str){ (const char *)p, strnlen((const char *)p, size) };
}

/* Use the header's own names unless an extended header gave others. */
static void header_names(struct tar_reader *r, const struct tar_header *h)
{
	struct str name = text_field(h->name, sizeof h->name);
	struct str link = text_field(h->link, sizeof h->link);
	struct str prefix = text_field(h->prefix, sizeof h->prefix);

	/* GNU's magic is "ustar ", and GNU stores other data in the prefix field. */
	if (memcmp(h->magic, "ustar", 6) != 0)
		prefix.n = 0;
	if (!(r->has & HAS_PATH))
		(void)snprintf(r->path, sizeof r->path, "%.*s%s%.*s", STR_ARG(prefix),
			       prefix.n ? "/" : "", STR_ARG(name));
	if (!(r->has & HAS_LINK))
		(void)snprintf(r->link, sizeof r->link, "%.*s", STR_ARG(link));
}

static bool header_numbers(struct tar_reader *r, const struct tar_header *h)
{
	struct tar_entry *e = &r->entry;
	uint64_t mode;

	e->mtime_ns = 0;
	if (!natural(h->mode, sizeof h->mode, &mode) || !natural(h->uid, sizeof h->uid, &e->uid) ||
	    !natural(h->gid, sizeof h->gid, &e->gid) ||
	    !natural(h->size, sizeof h->size, &e->size) ||
	    !number(h->mtime, sizeof h->mtime, &e->mtime_s))
		return false;
	e->mode = mode & 07777;
	if (r->has & HAS_SIZE)
		e->size = r->over.size;
	if (r->has & HAS_UID)
		e->uid = r->over.uid;
	if (r->has & HAS_GID)
		e->gid = r->over.gid;
	if (r->has & HAS_MTIME) {
		e->mtime_s = r->over.mtime_s;
		e->mtime_ns = r->over.mtime_ns;
	}
	return true;
}

static bool known_type(char type, const char *path, enum tar_type *ret)
{
	size_t n = strlen(path);

	switch (type) {
	case '\0':
	case '0':
	case '7': /* "contiguous": an ordinary file on today's systems */
		/* Before ustar, a directory was a file whose name ended with a slash. */
		*ret = n > 0 && path[n - 1] == '/' ? TAR_DIR : TAR_FILE;
		return true;
	case '1':
		*ret = TAR_HARDLINK;
		return true;
	case '2':
		*ret = TAR_SYMLINK;
		return true;
	case '5':
		*ret = TAR_DIR;
		return true;
	default:
		return false;
	}
}

static int begin_entry(struct tar_reader *r, const struct tar_header *h)
{
	struct tar_entry *e = &r->entry;
	bool is_link;
	int k;

	header_names(r, h);
	if (!header_numbers(r, h))
		return bad(r, -EBADMSG, "has a malformed number in its header");
	if (!known_type((char)h->type[0], r->path, &e->type))
		return refuse_type(r, (char)h->type[0]);
	if (r->path[0] == '\0')
		return bad(r, -EBADMSG, "entry without a name");
	is_link = e->type == TAR_SYMLINK || e->type == TAR_HARDLINK;
	if (is_link && r->link[0] == '\0')
		return bad(r, -EBADMSG, "is a link without a target");
	if (!is_link)
		r->link[0] = '\0';
	if (e->type != TAR_FILE && e->size != 0)
		return bad(r, -EBADMSG, "is not a file, but has data");
	e->records = r->has & HAS_RECORDS ? buf_str(&r->records) : STR_NONE;
	k = begin_data(r, TAR_S_DATA, e->size);
	r->has = 0;
	return k < 0 ? k : TAR_ENTRY;
}

static bool is_zero(const unsigned char *block)
{
	return block[0] == 0 && memcmp(block, block + 1, TAR_BLOCK - 1) == 0;
}

static int on_block(struct tar_reader *r)
{
	const struct tar_header *h = (const void *)r->block;
	uint64_t size;

	if (is_zero(r->block)) {
		if (r->has)
			return bad(r, -EBADMSG, "extended header without an entry");
		r->state = r->state == TAR_S_ZERO ? TAR_S_END : TAR_S_ZERO;
		return r->state == TAR_S_END ? TAR_END : TAR_MORE;
	}
	if (!(r->has & HAS_PATH))
		r->path[0] = '\0';
	if (r->state == TAR_S_ZERO)
		return bad(r, -EBADMSG, "end marker of only one block");
	if (!checksum_ok(r->block, h))
		return bad(r, -EBADMSG, "header with a wrong checksum");
	if (h->type[0] == '\0' || !strchr("xgLK", h->type[0]))
		return begin_entry(r, h);
	if (!natural(h->size, sizeof h->size, &size))
		return bad(r, -EBADMSG, "malformed size of an extended header");
	return begin_ext(r, (char)h->type[0], size);
}

static struct str take_input(struct str *in, uint64_t most)
{
	struct str part = { in->p, in->n < most ? in->n : (size_t)most };

	in->p += part.n;
	in->n -= part.n;
	return part;
}

static int read_block(struct tar_reader *r, struct str *in)
{
	struct str part = take_input(in, TAR_BLOCK - r->have);

	if (part.n)
		memcpy(r->block + r->have, part.p, part.n);
	r->have += part.n;
	if (r->have < TAR_BLOCK)
		return TAR_MORE;
	r->have = 0;
	return on_block(r);
}

static int read_ext(struct tar_reader *r, struct str *in)
{
	struct str part = take_input(in, r->left);
	int k = buf_add_str(&r->ext, part);

	if (k < 0)
		return bad(r, k, "extended header does not fit in memory");
	r->left -= part.n;
	if (r->left > 0)
		return TAR_MORE;
	r->state = TAR_S_PAD;
	return ext_done(r);
}

static int read_data(struct tar_reader *r, struct str *in, struct str *ret_data)
{
	if (r->left == 0) {
		r->state = TAR_S_PAD;
		return TAR_ENTRY_END;
	}
	*ret_data = take_input(in, r->left);
	r->left -= ret_data->n;
	return ret_data->n ? TAR_DATA : TAR_MORE;
}

static int reader_step(struct tar_reader *r, struct str *in, struct str *ret_data)
{
	switch (r->state) {
	case TAR_S_HEADER:
	case TAR_S_ZERO:
		return read_block(r, in);
	case TAR_S_EXT:
		return read_ext(r, in);
	case TAR_S_DATA:
		return read_data(r, in, ret_data);
	case TAR_S_PAD:
		r->pad -= take_input(in, r->pad).n;
		if (r->pad == 0)
			r->state = TAR_S_HEADER;
		return TAR_MORE;
	case TAR_S_END:
		return TAR_END;
	case TAR_S_BAD:
		break;
	}
	return -EBADMSG;
}

int tar_read(struct tar_reader *r, struct str *in, struct str *ret_data)
{
	int k;

	*ret_data = STR_NONE;
	do {
		k = reader_step(r, in, ret_data);
	} while (k == TAR_MORE && in->n > 0);
	return k;
}

static const char *component_fault(const char *p, size_t n, unsigned *depth)
{
	if (n == 2 && memcmp(p, "..", 2) == 0)
		return "has a '..' in its path";
	if (n > 255)
		return "has a component longer than 255 bytes";
	if (++*depth > LIMIT_TREE_DEPTH)
		return "is nested too deep";
	return NULL;
}

int tar_path_clean(const char *path, char out[LIMIT_PATH], const char **ret_why)
{
	unsigned depth = 0;
	size_t len = 0;

	out[0] = '\0';
	*ret_why = path[0] == '/' ? "has an absolute path" : NULL;
	while (*path && !*ret_why) {
		size_t n = strcspn(path, "/");

		if (n > 0 && !(n == 1 && path[0] == '.')) {
			*ret_why = component_fault(path, n, &depth);
			if (!*ret_why && len + n + 2 > LIMIT_PATH)
				*ret_why = "has a path that is too long";
			if (*ret_why)
				break;
			if (len)
				out[len++] = '/';
			memcpy(out + len, path, n);
			len += n;
			out[len] = '\0';
		}
		path += n + (path[n] == '/');
	}
	return *ret_why ? -EBADMSG : 0;
}

bool tar_xattr_ok(struct str name)
{
	/*
	 * An overlay mounted with userxattr obeys user.overlay.*, which could hide files in a
	 * layer.
	 */
	return str_starts(name, STR("user.")) && !str_starts(name, STR("user.overlay.")) &&
	       name.n > 5 && name.n < 256 && str_is_text(name);
}

bool tar_xattr_next(struct str *records, struct str *ret_name, struct str *ret_value)
{
	const size_t skip = sizeof TAR_XATTR_KEY - 1;
	struct str key, value;

	while (record_next(records, &key, &value) > 0) {
		if (!str_starts(key, STR(TAR_XATTR_KEY)))
			continue;
		*ret_name = (struct str){ key.p + skip, key.n - skip };
		*ret_value = value;
		if (tar_xattr_ok(*ret_name))
			return true;
	}
	return false;
}
