/*
 * The descriptors that a program finds open. The agent asks the sentinel to open them (src/agent/criu/criu.ts and
 * files.ts); a spawn opens only those that its program needs.
 */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

enum {
	/*
	 * A pipe to the sentinel. The program may write a byte there as soon as no process has to wait for it any more.
	 */
	FD_DONE = 199,
	FD_PROGRAMS = 200, /* directory of the node's programs, with `criu/` */
	FD_DIRECTORY = 201, /* CRIU: its images; rootfs: the directory to save or to restore */
	FD_WORK = 202, /* CRIU: directory for its log and for signals by files */
	FD_ARCHIVE = 202, /* rootfs */
	FD_LIST = 203, /* rootfs: the list of an archive's files */
	FD_PRESENT = 204, /* rootfs: the list of the files that are there now */
	FD_GATE = 205, /* rootfs: directory in which a file `go` appears */
	FD_LAST = FD_GATE,
};

#endif
