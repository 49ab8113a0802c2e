#pragma once

/*
 * Changes its memory in every way that could escape a record of writes: stores, system calls, madvise, mprotect, mremap
 * to new and to old neighbours, new mappings over old ones, forks, deep stacks, private mappings of files. Each
 * connection at PORT pauses all that, or resumes it, and answers `paused` or `running` with a number that counts its
 * steps. While it is paused no thread writes.
 */
int storm(int port);
