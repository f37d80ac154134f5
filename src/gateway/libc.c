/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the C library that c-ares calls and that would open files: service, device and host
 * names. The jail has no files, so they are replaced here.
 */
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

/*
 * c-ares takes random query ids from /dev/urandom, or from rand() if that file is missing. libc's
 * rand() starts with the same number in every process, so query ids could be guessed.
 */
int rand(void)
{
	unsigned value = 0;

	if (getrandom(&value, sizeof value, 0) != sizeof value)
		abort();
	return (int)(value & RAND_MAX);
}

struct servent *getservbyname(const char *name, const char *proto)
{
	(void)name;
	(void)proto;
	return NULL;
}

int getservbyport_r(int port, const char *proto, struct servent *result, char *buf, size_t size,
		    struct servent **ret)
{
	(void)port;
	(void)proto;
	(void)result;
	(void)buf;
	(void)size;
	*ret = NULL;
	return ENOENT;
}

char *if_indextoname(unsigned index, char *name)
{
	(void)index;
	(void)name;
	errno = ENXIO;
	return NULL;
}

int gethostname(char *name, size_t size)
{
	(void)name;
	(void)size;
	errno = ENOSYS;
	return -1;
}
