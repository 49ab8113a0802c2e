/*
 * The secret that each client must send first. A tenant may lay a symbolic link that leads an agent's connection here.
 * The kernel then reports root as the peer, while the bytes come from the tenant. Only a client that has read a file of
 * root's knows the secret.
 */
#ifndef SECRET_H
#define SECRET_H

#include <stdbool.h>
#include <stddef.h>

enum { SECRET_LENGTH = 64 };

/* Draws a secret and writes it to SOCKET.secret, replacing an earlier one. False with errno. */
bool secret_open(const char *socket);

/* Compares in constant time. */
bool secret_is(const char *text, size_t length);

/* Removes the file. */
void secret_close(const char *socket);

#endif
