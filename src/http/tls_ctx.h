/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to TLS: the filter of a connection with a context. */
#pragma once

#include <openssl/ssl.h>

#include "http/filter.h"

/* The caller says whether *ret_ssl accepts or connects. NULL if memory ran out. */
struct http_filter *http_tls_filter(SSL_CTX *ctx, SSL **ret_ssl);
