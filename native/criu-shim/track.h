/* Lets CRIU save only the pages that were written since its previous dump. See track.c. */
#pragma once

/* True: the call was for the record of written pages, and `*fd` is its result. */
int track_opens(int directory, const char *path, int flags, long *fd);

/* Call it for each image that CRIU opens. */
void track_image(const char *path, int flags);

/* Call it after each read. */
void track_reads(int fd, void *bytes, long got);
