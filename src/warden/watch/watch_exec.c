/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/watch/watch_exec.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "sys/process/tracee.h"

static uint64_t page_of(uint64_t addr)
{
	return addr & ~(uint64_t)(EXEC_PAGE - 1);
}

void exec_mem_init(struct exec_mem *m, const struct exec_req *q)
{
	uint64_t page[2] = { page_of(q->path), page_of(q->argv) };
	struct iovec local = { m->page, sizeof m->page[0] * 2 };
	struct iovec remote[2] = { { (void *)(uintptr_t)page[0], EXEC_PAGE },
				   { (void *)(uintptr_t)page[1], EXEC_PAGE } };
	bool two = page[1] && page[1] != page[0];
	ssize_t n = page[0] ? process_vm_readv(q->tid, &local, 1, remote, two ? 2 : 1, 0) : 0;

	m->tid = q->tid;
	memset(m->at, 0, sizeof m->at);
	/* A page that was not read now is read again later, and then gives the error. */
	for (m->next = 0; m->next < ARRAY_LEN(page) && n >= EXEC_PAGE; n -= EXEC_PAGE, m->next++)
		m->at[m->next] = page[m->next];
}

void exec_req_of(const struct seccomp_notif *n, struct exec_req *ret)
{
	const uint64_t *a = (const uint64_t *)n->data.args;

	*ret = (struct exec_req){ .tid = (int)n->pid, .dirfd = AT_FDCWD };
	if (n->data.nr == SYS_execveat) {
		ret->dirfd = (int)a[0];
		ret->path = a[1];
		ret->argv = a[2];
		ret->flags = (unsigned)a[4];
	} else {
		ret->path = a[0];
		ret->argv = a[1];
	}
}

/* The local address of the byte at addr, and the bytes left on its page; NULL: unreadable. */
static const char *peek(struct exec_mem *m, uint64_t addr, size_t *ret_n)
{
	uint64_t page = page_of(addr);
	size_t off = (size_t)(addr - page);
	unsigned i = 0;

	*ret_n = EXEC_PAGE - off;
	m->err = EFAULT;
	if (page == 0)
		return NULL;
	while (i < EXEC_PAGES && m->at[i] != page)
		i++;
	if (i == EXEC_PAGES) {
		struct iovec local, remote = { (void *)(uintptr_t)page, EXEC_PAGE };

		i = m->next++ % EXEC_PAGES;
		m->at[i] = page;
		local = (struct iovec){ m->page[i], EXEC_PAGE };
		errno = EFAULT;
		if (process_vm_readv(m->tid, &local, 1, &remote, 1, 0) != EXEC_PAGE) {
			m->err = errno;
			m->at[i] = 0;
			return NULL;
		}
	}
	return m->page[i] + off;
}

/* Copy a text with its terminator. Returns its length; -EMSGSIZE with dst full, unterminated. */
static ssize_t copy_text(struct exec_mem *m, uint64_t addr, char *dst, size_t size)
{
	size_t done = 0;

	while (done < size) {
		size_t n;
		const char *src = peek(m, addr + done, &n);
		const char *end;

		if (!src)
			return -m->err;
		if (n > size - done)
			n = size - done;
		end = memchr(src, '\0', n);
		if (end)
			n = (size_t)(end - src) + 1;
		memcpy(dst + done, src, n);
		done += n;
		if (end)
			return (ssize_t)done - 1;
	}
	return -EMSGSIZE;
}

int exec_read_path(struct exec_mem *m, const struct exec_req *q, char path[LIMIT_PATH])
{
	ssize_t n = copy_text(m, q->path, path, LIMIT_PATH);

	if (n >= 0)
		return 0;
	path[0] = '\0';
	return n == -EMSGSIZE ? -ENAMETOOLONG : (int)n;
}

/*
 * How many of the n bytes fit into `budget` bytes of JSON. The costs are upper bounds, so that no
 * arguments can make an event too long to be written.
 */
enum { COST_ITEM = 4, COST_BASE64 = 10, COST_CONTROL = 6 };
static size_t fits(const char *p, size_t n, size_t budget, size_t *ret_cost)
{
	size_t cost = COST_ITEM, i;
	bool high = false;

	for (i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];
		size_t more = 1;

		if (c < ' ' || c == 0x7f)
			more = COST_CONTROL;
		else if (c >= 0x80 || c == '"' || c == '\\')
			more = c >= 0x80 && !high ? 2 + COST_BASE64 : 2;
		if (cost + more > budget)
			break;
		high = high || c >= 0x80;
		cost += more;
	}
	*ret_cost = cost;
	return i;
}

/* Cut before a UTF-8 character, not within it; otherwise the whole text would become base64. */
static size_t whole_chars(const char *p, size_t n)
{
	size_t back = 0;

	while (back < 3 && back < n && ((unsigned char)p[n - 1 - back] & 0xc0) == 0x80)
		back++;
	return back < n && ((unsigned char)p[n - 1 - back] & 0xc0) == 0xc0 ? n - 1 - back : n;
}

/* Append one argument as far as it fits. False if all or part of it was omitted. */
static bool add_arg(struct exec_mem *m, uint64_t addr, struct exec_args *a, size_t *left)
{
	char *dst = a->text + a->len;
	size_t cost, n, keep;
	ssize_t r = copy_text(m, addr, dst, *left);

	if ((r < 0 && r != -EMSGSIZE) || *left < COST_ITEM)
		return false;
	n = r < 0 ? *left : (size_t)r;
	keep = fits(dst, n, *left, &cost);
	if (keep < n || r < 0)
		keep = whole_chars(dst, keep);
	dst[keep] = '\0';
	a->len += keep + 1;
	a->argc++;
	*left -= cost;
	return r >= 0 && keep == n;
}

static bool read_pointer(struct exec_mem *m, uint64_t addr, uint64_t *ret)
{
	char raw[sizeof *ret];

	for (size_t done = 0; done < sizeof raw;) {
		size_t n;
		const char *src = peek(m, addr + done, &n);

		if (!src)
			return false;
		if (n > sizeof raw - done)
			n = sizeof raw - done;
		memcpy(raw + done, src, n);
		done += n;
	}
	memcpy(ret, raw, sizeof raw);
	return true;
}

void exec_read_args(struct exec_mem *m, const struct exec_req *q, struct exec_args *ret)
{
	size_t left = sizeof ret->text;

	ret->argc = ret->cut = 0;
	ret->len = 0;
	for (unsigned i = 0; q->argv; i++) {
		uint64_t arg;

		if (i == LIMIT_ARGS || !read_pointer(m, q->argv + i * sizeof arg, &arg)) {
			ret->cut++;
			return;
		}
		if (arg == 0)
			return;
		if (ret->cut || !add_arg(m, arg, ret, &left))
			ret->cut++;
	}
}

/* More pointers than the kernel puts on a stack for arguments and environment. */
enum { POINTERS_MOST = 1 << 18 };

/*
 * The address of the path. A new stack has this order: argc, the arguments, NULL, the environment,
 * NULL, and pairs of a type and a value. Cheaper than /proc/PID/auxv.
 */
static int find_execfn(int pid, uint64_t argv, uint64_t *ret)
{
	struct exec_mem m __attribute__((uninitialized));
	uint64_t at = argv, v, type;

	exec_mem_init(&m, &(struct exec_req){ .tid = pid, .path = argv });
	for (int lists = 0, n = 0; lists < 2; at += sizeof v) {
		if (++n > POINTERS_MOST || !read_pointer(&m, at, &v))
			return -ENODATA;
		lists += v == 0;
	}
	do {
		if (!read_pointer(&m, at, &type) || !read_pointer(&m, at + sizeof type, &v))
			return -ENODATA;
		at += sizeof type + sizeof v;
	} while (type != AT_EXECFN && type != AT_NULL);
	*ret = v;
	return type == AT_EXECFN ? 0 : -ENODATA;
}

int exec_image(struct exec_req *q)
{
	uint64_t sp;
	int r = tracee_stack(q->tid, &sp);

	if (r < 0)
		return r;
	q->argv = sp + sizeof sp;
	return find_execfn(q->tid, q->argv, &q->path);
}
