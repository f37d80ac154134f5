/* SPDX-License-Identifier: Apache-2.0 */
/* Every ceiling on what a peer can make us hold, in one place. Sizes in bytes. */
#pragma once

#include <stdint.h>

enum {
	LIMIT_FRAME_BODY = 1 << 20,	    /* one frame: argv and environment of an exec */
	LIMIT_FRAME_DATA = 64 * 1024,	    /* payload of one data frame */
	LIMIT_FRAME_FDS = 8,		    /* descriptors that travel with one frame */
	LIMIT_ORDER = 32 * 1024,	    /* request that is given to a child made ahead */
	LIMIT_CONN_OUT = 4 << 20,	    /* unsent bytes of one connection */
	LIMIT_CONN_HIGH = 256 * 1024,	    /* above this, sources of data are not read */
	LIMIT_STDIN_WINDOW = 256 * 1024,    /* stdin that a client may send unacknowledged */
	LIMIT_ARGS = 4096,		    /* arguments of one command */
	LIMIT_ENV = 4096,		    /* variables of one command */
	LIMIT_PATH = 4096,		    /* a path, with its terminator */
	LIMIT_NAME = 63,		    /* names of sandboxes, caller's call ids */
	LIMIT_LABELS = 64,		    /* labels of one sandbox or call */
	LIMIT_LABEL = 256,		    /* one label, key=value */
	LIMIT_MOUNTS = 32,		    /* --dir and --ro of one sandbox */
	LIMIT_LAYERS = 48,		    /* sealed layers below one upper */
	LIMIT_CLIENTS = 64,		    /* connections to one warden */
	LIMIT_CALLS = 1024,		    /* running calls of one sandbox */
	LIMIT_EVENT = 64 * 1024,	    /* one line of a trace */
	LIMIT_TRACE_ARGV = 16 * 1024,	    /* argument text kept in one event */
	LIMIT_TRACE_BATCH = 1 << 20,	    /* events that wait to be written to a trace */
	LIMIT_PROCESSES = 65536,	    /* processes watched in one sandbox */
	LIMIT_ENDED = 256,		    /* traces kept of ended sandboxes */
	LIMIT_PAX = 64 * 1024,		    /* extended header of one tar entry */
	LIMIT_TAR_TRAILER = 1 << 20,	    /* bytes after the end mark of a tar stream */
	LIMIT_TREE_ENTRIES = 4 << 20,	    /* entries of one copied tree */
	LIMIT_TREE_DEPTH = 512,		    /* directories above one entry of a copied tree */
	LIMIT_TREE_DIRS = 64 << 20,	    /* memory for directories that wait for their turn */
	LIMIT_TREE_LINKS = 65536,	    /* files with several names that are remembered */
	LIMIT_TREE_NAMES = 16 << 20,	    /* memory for their names */
	LIMIT_XATTRS = 32 * 1024,	    /* extended attributes of one copied file */
	LIMIT_WALK_EVENTS = 65536,	    /* file events of one walk; the rest is counted */
	LIMIT_WALK_DEPTH = 4096,	    /* levels of directories that a walk goes down */
	LIMIT_WALK_NAMES = 1000000,	    /* entries of a directory, with those above it */
	LIMIT_WALK_TEXT = 32 << 20,	    /* the names of these */
	LIMIT_DIFF_ENTRIES = 2000000,	    /* changes of one comparison */
	LIMIT_DIFF_TEXT = 64 << 20,	    /* a file that is compared line by line */
	LIMIT_EVENT_CALLS = 64,		    /* candidates listed in one event */
	LIMIT_TLS_HELLO = 16 * 1024,	    /* a ClientHello, put together from its records */
	LIMIT_HTTP_HEAD = 16 * 1024,	    /* the head of an HTTP message, or its trailers */
	LIMIT_HTTP_HEADERS = 100,	    /* lines of one head */
	LIMIT_HTTP_CHUNK_LINE = 256,	    /* a chunk's size with its extensions */
	LIMIT_POLICY_TEXT = 256 * 1024,	    /* a policy document */
	LIMIT_POLICY = 512 * 1024,	    /* a compiled policy: fits into one frame */
	LIMIT_POLICY_RULES = 1024,	    /* rules of one policy */
	LIMIT_POLICY_ITEMS = 1024,	    /* hosts, addresses, ports, ... of one rule, each */
	LIMIT_POLICY_NODES = 32768,	    /* values in a policy document */
	LIMIT_POLICY_DEPTH = 8,		    /* nested lists and maps in it */
	LIMIT_NET_NAMES = 4096,		    /* names that one gateway knows by their addresses */
	LIMIT_NET_LOOKUPS = 512,	    /* names that are being looked up */
	LIMIT_NET_FLOWS = 8192,		    /* connections through one gateway */
	LIMIT_NET_ROOMY = 64,		    /* of them with buffers as large as the kernel likes */
	LIMIT_NET_SNUG = 1024,		    /* of them with buffers of LIMIT_NET_BUFFER */
	LIMIT_NET_BUFFER = 64 * 1024,	    /* bytes in the kernel, each way at each end */
	LIMIT_NET_BUFFER_LEAST = 16 * 1024, /* the same beyond these */
	LIMIT_NET_PIPE = 1024 * 1024, /* between the two, while there are not more than ROOMY */
	LIMIT_NET_CLOSING = 64,	      /* descriptors of ended connections to be closed soon */
	LIMIT_NET_QUERIES = 1024,     /* DNS queries that wait for their answer */
	LIMIT_NET_DENIED = 16,	      /* refusals that the result of a call lists */
};

/*
 * Open files of a command of a sandbox without root, where we may have so many. Who has a lower
 * limit than its user has descriptors on their way in sockets, all processes together, may send
 * none (unix(7), ETOOMANYREFS). All such sandboxes are one user's: the difference is what wardens
 * and inits always can send.
 */
static inline uint64_t limit_files_inside(uint64_t most)
{
	return most - most / 4;
}
