/* The connections that wait for kept sockets. */
#ifndef QUEUES_H
#define QUEUES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* A tenant chooses how many its application has. The program keeps no more than these. */
enum { MOST_SOCKETS = 256 };

/* A listening socket. */
struct kept {
	ino_t number;
	int fd, waited; /* connections that have waited for too long */
	struct sockaddr_in6 address; /* sockaddr_in has family and port at the same places */
};

extern struct kept kept[MOST_SOCKETS];
extern int kept_count;

/*
 * Closes the oldest connections of each queue, as many as have waited for longer than a second. Returns false, with
 * errno, if the kernel does not tell.
 */
bool close_forgotten(void);

/* Closes all kept sockets, so that their queues move. */
void let_go(void);

#endif
