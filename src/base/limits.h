/* SPDX-License-Identifier: Apache-2.0 */
/* Every ceiling on what a peer can make us hold. Sizes are in bytes. */
#pragma once

#include <stdint.h>

enum {
	LIMIT_FRAME_BODY = 1 << 20,   /* one frame: argv and environment of an exec */
	LIMIT_FRAME_DATA = 64 * 1024, /* payload of one data frame */
	LIMIT_FRAME_FDS = 8,	      /* descriptors that travel with one frame */
	LIMIT_ORDER = 32 * 1024,      /* request to a spare child */
	LIMIT_CONN_OUT = 4 << 20,     /* unsent bytes of one connection */
	LIMIT_CONN_HIGH = 256 * 1024, /* above this, stop reading the sources */
	LIMIT_CHANNEL = 256 * 1024,   /* per direction of one channel without descriptor passing */
	LIMIT_STDIN_WINDOW = 256 * 1024, /* stdin that a client may send unacknowledged */
	LIMIT_ARGS = 4096,		 /* arguments of one command */
	LIMIT_ENV = 4096,		 /* variables of one command */
	LIMIT_PATH = 4096,		 /* a path, with its terminator */
	LIMIT_NAME = 63,		 /* names of sandboxes, caller's call ids */
	LIMIT_LABELS = 64,		 /* labels of one sandbox or call */
	LIMIT_LABEL = 256,		 /* one label, key=value */
	LIMIT_MOUNTS = 32,		 /* --dir and --ro of one sandbox */
	LIMIT_LAYERS = 48,		 /* sealed layers below one upper */
	LIMIT_CLIENTS = 64,		 /* connections to one warden */
	LIMIT_CALLS = 1024,		 /* running calls of one sandbox */
	LIMIT_CALLS_KEPT = 256,		 /* ended calls whose results are kept */
	LIMIT_CALLS_KNOWN = 4096,	 /* ended detached calls kept; their ids last a day */
	LIMIT_CALLS_LISTED = 256,	 /* calls in one list */
	LIMIT_CALL_ARGS = 2048,		 /* argument text of one call in a list */
	LIMIT_CALL_RESULT = 4096,	 /* one stored call result */
	LIMIT_VIEWERS = 64,		 /* calls that one connection may follow */
	LIMIT_RETAIN = 1 << 20,		 /* retained output of one detached call */
	LIMIT_RETAIN_LEAST = 64 * 1024,	 /* smallest retained output that a client can ask for */
	LIMIT_RETAINED = 64,		 /* detached calls with retained output */
	LIMIT_WINDOW = 16 << 20,	 /* output that a client may let us send unacknowledged */
	LIMIT_NET_ASKS = 64,		 /* requests queued for one gateway */
	LIMIT_EVENT = 64 * 1024,	 /* one line of a trace */
	LIMIT_TRACE_ARGV = 16 * 1024,	 /* argument text kept in one event */
	LIMIT_TRACE_BATCH = 1 << 20,	 /* events queued for a trace */
	LIMIT_PROCESSES = 65536,	 /* processes watched in one sandbox */
	LIMIT_ENDED = 256,		 /* traces kept after their sandbox ended */
	LIMIT_ENDED_DAYS = 30,		 /* maximum age of those traces */
	LIMIT_TRACE_SEGMENT = 16 << 20,	 /* bytes of a trace before it continues in another file */
	LIMIT_TRACE_SEGMENTS = 16,    /* files of one trace; the oldest is deleted for the next */
	LIMIT_PAX = 64 * 1024,	      /* extended header of one tar entry */
	LIMIT_TAR_TRAILER = 1 << 20,  /* bytes after the end marker of a tar stream */
	LIMIT_TREE_ENTRIES = 4 << 20, /* entries of one copied tree */
	LIMIT_TREE_DEPTH = 512,	      /* depth of a copied tree */
	LIMIT_TREE_DIRS = 64 << 20,   /* memory for directories still to be copied */
	LIMIT_TREE_LINKS = 65536,     /* files with several names in one copied tree */
	LIMIT_TREE_NAMES = 16 << 20,  /* memory for the names of those files */
	LIMIT_XATTRS = 32 * 1024,     /* extended attributes of one copied file */
	LIMIT_WALK_EVENTS = 65536,  /* file events of one walk; further changes are only counted */
	LIMIT_WALK_DEPTH = 4096,    /* directory depth of a walk */
	LIMIT_WALK_NAMES = 1000000, /* entries of a directory and of all its parents */
	LIMIT_WALK_TEXT = 32 << 20, /* memory for the names of those entries */
	LIMIT_DIFF_ENTRIES = 2000000, /* changes in one comparison */
	LIMIT_GIT_INDEX = 256 << 20,  /* a git index that we check before applying it */
	LIMIT_GIT_CONFIG = 1 << 20,   /* the host's configuration of a repository */
	LIMIT_DIFF_TEXT = 64 << 20,   /* a file compared line by line */
	LIMIT_EVENT_CALLS = 64,	      /* candidate calls listed in one event */
	LIMIT_TLS_HELLO = 16 * 1024,  /* a ClientHello, joined from its records */
	LIMIT_HTTP_HEAD = 16 * 1024,  /* the head of an HTTP message, or its trailers */
	LIMIT_HTTP_HEADERS = 100,     /* header lines of one head */
	LIMIT_HTTP_CHUNK_LINE = 256,  /* a chunk size line with its extensions */
	LIMIT_HTTP_IN = 64 * 1024,    /* read from one connection per turn */
	LIMIT_HTTP_OUT = 128 * 1024,  /* written to one connection per turn */
	LIMIT_HTTP_WRITE = 1 << 20,   /* one write to a streamed answer */
	LIMIT_HTTP_ANSWER = 64 << 20, /* one answer that is not streamed */
	LIMIT_HTTP_WINDOW =
		256 * 1024, /* unsent bytes of a stream, up to LIMIT_HTTP_ROOMY streams */
	LIMIT_HTTP_WINDOW_LEAST = 32 * 1024, /* the same for further streams */
	LIMIT_HTTP_ROOMY = 64,		     /* streams with the large window */
	LIMIT_HTTP_DRAIN = 64 * 1024,	     /* unread body that is dropped to keep a connection */
	LIMIT_HTTP_LINGER = 4 << 20,	     /* bytes that are dropped after an early answer */
	LIMIT_GUNZIP = 1 << 30,		     /* decoded bytes of one compressed body */
	LIMIT_GUNZIP_RATIO = 100,	     /* decoded bytes per compressed byte */
	LIMIT_WS_MESSAGE = 1 << 20,	     /* one WebSocket message */
	LIMIT_PART_HEAD = 8 * 1024,	     /* headers of one part of a form */
	LIMIT_PARTS = 1024,		     /* parts of one form */
	LIMIT_POLICY_TEXT = 256 * 1024,	     /* a policy document */
	LIMIT_POLICY = 512 * 1024,	     /* a compiled policy; it must fit into one frame */
	LIMIT_POLICY_RULES = 1024,	     /* rules of one policy */
	LIMIT_POLICY_ITEMS = 1024,    /* entries in each list of a rule: hosts, addresses, ports */
	LIMIT_POLICY_NODES = 32768,   /* values in a policy document */
	LIMIT_POLICY_DEPTH = 8,	      /* nesting depth of lists and maps in a policy document */
	LIMIT_NET_NAMES = 4096,	      /* host names with an address in one gateway */
	LIMIT_NET_LOOKUPS = 512,      /* lookups in progress */
	LIMIT_NET_FLOWS = 8192,	      /* connections through one gateway */
	LIMIT_NET_ROOMY = 64,	      /* flows whose buffers the kernel sizes */
	LIMIT_NET_SNUG = 1024,	      /* flows with buffers of LIMIT_NET_BUFFER */
	LIMIT_NET_BUFFER = 64 * 1024, /* kernel buffer per direction and end */
	LIMIT_NET_BUFFER_LEAST = 16 * 1024, /* the same for all further flows */
	LIMIT_NET_PIPE = 1024 * 1024, /* pipe between the two ends, up to LIMIT_NET_ROOMY flows */
	LIMIT_NET_CLOSING = 64,	      /* descriptors of ended flows waiting to be closed */
	LIMIT_NET_QUERIES = 1024,     /* DNS queries without an answer yet */
	LIMIT_DIAL_ASKS =
		LIMIT_NET_FLOWS + LIMIT_NET_QUERIES, /* requests from a gateway to its dialer */
	LIMIT_NET_DENIED = 16,			     /* denials listed in a call's result */
};

/*
 * Open files for a command in a rootless sandbox, given our own limit.
 *
 * The kernel counts the descriptors that a user has in flight in sockets, over all processes. A
 * process whose own limit is below that count cannot send any (unix(7), ETOOMANYREFS). All rootless
 * sandboxes belong to one user. Wardens and inits keep a higher limit than commands, so they can
 * always send.
 */
static inline uint64_t limit_files_inside(uint64_t most)
{
	return most - most / 4;
}
