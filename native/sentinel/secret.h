/*
 * What a client has to know. A connection may be brought here by a link that somebody else has laid, so that the kernel
 * names root as its peer while its words are those of a tenant: whoever sends the secret first has read a file of root's.
 */
#ifndef SECRET_H
#define SECRET_H

#include <stdbool.h>
#include <stddef.h>

enum { SECRET_LENGTH = 64 };

/* Draws a secret and writes it to SOCKET.secret, in place of an earlier one. False with errno. */
bool secret_open(const char *socket);

/* In the same time, however much of it is right. */
bool secret_is(const char *text, size_t length);

/* Takes the file away. */
void secret_close(const char *socket);

#endif
