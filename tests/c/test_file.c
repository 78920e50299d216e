/* Files are wholly there or not there, whichever write or fsync fails; locks hold between processes and die with them. */
#include "ph_test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/file.h"

static ph_err err;
static char dir[64];

/* A path in the folder of this run; valid until the fourth next call. */
static const char *in_dir(const char *name) {
  static char ring[4][256];
  static unsigned next;
  char *path = ring[next++ % 4];
  snprintf(path, sizeof ring[0], "%s/%s", dir, name);
  return path;
}

static int dir_setup(void **state) {
  strcpy(dir, "/tmp/phrun-file-XXXXXX");
  return mkdtemp(dir) ? ph_live_setup(state) : -1;
}

static int dir_check(void **state) {
  char command[128];
  ph_file_fail_at(0);
  snprintf(command, sizeof command, "rm -rf '%s'", dir);
  return system(command) == 0 ? ph_live_check(state) : -1;
}

static int count_files(void) {
  char *names;
  size_t n;
  ph_ok(ph_file_list(dir, &names, &n, &err));
  ph_mem_free(names);
  return (int)n;
}

static void check_file(const char *path, const char *want) {
  char *text;
  size_t n;
  ph_ok(ph_file_read(path, 0, &text, &n, &err));
  assert_int_equal(n, strlen(want));
  assert_string_equal(text, want);
  ph_mem_free(text);
}

static bool is_there(const char *path) { return access(path, F_OK) == 0; }

/* ---- writing ---- */

static void write_replaces(void **state) {
  (void)state;
  ph_ok(ph_file_write(in_dir("a"), "first", 5, &err));
  check_file(in_dir("a"), "first");
  ph_ok(ph_file_write(in_dir("a"), "", 0, &err));
  check_file(in_dir("a"), "");
  assert_int_equal(count_files(), 1);
}

/* Steps of a write: write, fsync, fsync of the folder. A failure before the rename leaves the old file, alone. */
static void write_fails_whole(void **state) {
  (void)state;
  char *big = ph_mem_new(100001, 1);
  memset(big, 'x', 100000);
  for (int old = 0; old < 2; old++) {
    for (int n = 1; n <= 3; n++) {
      const char *path = in_dir("a");
      unlink(path);
      if (old) {
        ph_ok(ph_file_write(path, "old", 3, &err));
      }
      ph_file_fail_at(n);
      ph_fails(PH_E_IO, "No space left on device", ph_file_write(path, big, 100000, &err), err);
      ph_file_fail_at(0);
      if (n < 3 && !old) {
        assert_false(is_there(path));
      } else {
        check_file(path, n < 3 ? "old" : big);
      }
      assert_int_equal(count_files(), n < 3 && !old ? 0 : 1);
    }
  }
  ph_file_fail_at(4);
  ph_ok(ph_file_write(in_dir("a"), "done", 4, &err)); /* there is no fourth step */
  ph_mem_free(big);
}

static void write_says_why_not(void **state) {
  (void)state;
  ph_ok(ph_file_write(in_dir("plain"), "x", 1, &err));
  ph_fails(PH_E_NOTFOUND, "No such file or directory", ph_file_write(in_dir("none/a"), "x", 1, &err), err);
  ph_fails(PH_E_IO, "Not a directory", ph_file_write(in_dir("plain/a"), "x", 1, &err), err);
  ph_fails(PH_E_IO, "it is a directory", ph_file_write(dir, "x", 1, &err), err);
  ph_fails(PH_E_IO, "it is not a regular file", ph_file_write("/dev/null", "x", 1, &err), err);
  ph_fails(PH_E_NOTFOUND, "/proc/a: cannot write", ph_file_write("/proc/a", "x", 1, &err), err);
}

/* ---- appending ---- */

static void append_fails_whole(void **state) {
  (void)state;
  const char *path = in_dir("log");
  ph_ok(ph_file_append_line(path, "one", 3, &err));
  for (int n = 1; n <= 2; n++) {
    ph_file_fail_at(n);
    ph_fails(PH_E_IO, "No space left on device", ph_file_append_line(path, "two two two", 11, &err), err);
    ph_file_fail_at(0);
    check_file(path, "one\n");
  }
  ph_ok(ph_file_append_line(path, "two", 3, &err));
  ph_ok(ph_file_append(path, "thr", 3, &err));
  check_file(path, "one\ntwo\nthr");
  ph_ok(ph_file_append_line(path, "four", 4, &err)); /* "thr" was torn by a kill: it stays a line of its own */
  check_file(path, "one\ntwo\nthr\nfour\n");
  ph_fails(PH_E_ARG, "newline", ph_file_append_line(path, "a\nb", 3, &err), err);
  ph_fails(PH_E_IO, "Is a directory", ph_file_append_line(dir, "a", 1, &err), err);
}

static void append_to_a_full_disk(void **state) {
  (void)state;
  ph_fails(PH_E_IO, "No space left on device", ph_file_append("/dev/full", "x", 1, &err), err);
}

/* A real full disk: a tmpfs of 64 KiB. */
static void full_disk(void **state) {
  (void)state;
  const char *path = in_dir("run.h5");
  if (mount("none", dir, "tmpfs", 0, "size=64k") != 0) {
    print_message("pending: no right to mount a small disk\n");
    skip();
  }
  char *big = ph_mem_new(200000, 1);
  ph_status kept = ph_file_write(path, "kept", 4, &err);
  ph_status whole = ph_file_write(path, big, 200000, &err);
  ph_err why = err;
  ph_status line = ph_file_append_line(in_dir("log"), "a", 1, &err);
  ph_status more = ph_file_append(in_dir("log"), big, 200000, &err);
  int files = count_files();
  check_file(path, "kept");
  check_file(in_dir("log"), "a\n");
  umount(dir);
  ph_mem_free(big);
  assert_int_equal(kept, PH_OK);
  assert_int_equal(whole, PH_E_IO);
  assert_non_null(strstr(why.text, "No space left on device"));
  assert_int_equal(line, PH_OK);
  assert_int_equal(more, PH_E_IO);
  assert_int_equal(files, 2);
}

/* The user root may write anywhere, so "read-only" needs a read-only disk. */
static void read_only_disk(void **state) {
  (void)state;
  if (mount("none", dir, "tmpfs", MS_RDONLY, "size=64k") != 0) {
    print_message("pending: no right to mount a read-only disk\n");
    skip();
  }
  ph_lock *lock = NULL;
  ph_status w = ph_file_write(in_dir("a"), "x", 1, &err);
  ph_status l = ph_lock_take(&lock, in_dir(".lock"), NULL);
  ph_status m = ph_file_mkdir(in_dir("sub"), NULL);
  ph_status again = ph_file_mkdir(dir, NULL);
  umount(dir);
  assert_int_equal(w, PH_E_IO);
  assert_non_null(strstr(err.text, "Read-only file system"));
  assert_int_equal(l, PH_E_IO);
  assert_int_equal(m, PH_E_IO);
  assert_int_equal(again, PH_OK); /* a folder that is there is there */
}

/* ---- reading, folders ---- */

static void read_checks(void **state) {
  (void)state;
  char *text;
  size_t n;
  ph_ok(ph_file_write(in_dir("a"), "12345", 5, &err));
  ph_fails(PH_E_LIMIT, "more than the limit of 4", ph_file_read(in_dir("a"), 4, &text, &n, &err), err);
  ph_ok(ph_file_read(in_dir("a"), 5, &text, &n, &err));
  ph_mem_free(text);
  ph_fails(PH_E_NOTFOUND, "nothing: cannot open: No such file", ph_file_read(in_dir("nothing"), 0, &text, &n, &err),
           err);
  ph_fails(PH_E_IO, "it is a directory", ph_file_read(dir, 0, &text, &n, &err), err);
  assert_int_equal(mkfifo(in_dir("pipe"), 0600), 0);
  ph_fails(PH_E_IO, "not a regular file", ph_file_read(in_dir("pipe"), 0, &text, &n, &err),
           err);                                                /* and does not wait */
  ph_ok(ph_file_read("/proc/self/status", 0, &text, &n, &err)); /* stat says 0 bytes */
  assert_true(n > 100 && strlen(text) == n);
  ph_mem_free(text);
  ph_fails(PH_E_LIMIT, "longer than the limit", ph_file_read("/proc/self/status", 10, &text, &n, &err), err);
}

static void folders(void **state) {
  (void)state;
  char *names;
  size_t n;
  ph_file_info info;
  ph_ok(ph_file_mkdir(in_dir("x/y//z"), &err));
  ph_ok(ph_file_mkdir(in_dir("x/y/z/"), &err));
  ph_ok(ph_file_mkdir("/", &err));
  ph_ok(ph_file_write(in_dir("x/b"), "12", 2, &err));
  ph_ok(ph_file_write(in_dir("x/B"), "1", 1, &err));
  ph_ok(ph_file_list(in_dir("x"), &names, &n, &err));
  assert_int_equal(n, 3);
  assert_memory_equal(names, "B\0b\0y\0", 6);
  ph_mem_free(names);
  ph_ok(ph_file_stat(in_dir("x/b"), &info, &err));
  assert_true(info.is_file && !info.is_dir && info.size == 2 && info.mtime > 1.6e9);
  ph_ok(ph_file_stat(in_dir("x"), &info, &err));
  assert_true(info.is_dir && !info.is_file);
  ph_fails(PH_E_NOTFOUND, "No such file", ph_file_stat(in_dir("nothing"), &info, &err), err);
  ph_fails(PH_E_NOTFOUND, "No such file", ph_file_stat(in_dir("x/b/c"), &info, &err), err);
  ph_fails(PH_E_IO, "in the way", ph_file_mkdir(in_dir("x/b"), &err), err);
  ph_fails(PH_E_IO, "in the way", ph_file_mkdir(in_dir("x/b/c"), &err), err);
  ph_fails(PH_E_NOTFOUND, "No such file", ph_file_mkdir("", &err), err);
  ph_fails(PH_E_IO, "not empty", ph_file_remove(in_dir("x"), &err), err);
  ph_ok(ph_file_rename(in_dir("x/b"), in_dir("x/B"), &err));
  check_file(in_dir("x/B"), "12");
  ph_fails(PH_E_NOTFOUND, "x/b: ", ph_file_rename(in_dir("x/b"), in_dir("x/c"), &err), err);
  ph_ok(ph_file_remove(in_dir("x/B"), &err));
  ph_fails(PH_E_NOTFOUND, "No such file", ph_file_remove(in_dir("x/B"), &err), err);
  ph_fails(PH_E_NOTFOUND, "cannot list", ph_file_list(in_dir("nothing"), &names, &n, &err), err);
}

static ph_status all_calls(void) {
  char *text = NULL;
  char *names = NULL;
  char hex[65];
  size_t n;
  ph_lock *lock = NULL;
  ph_status s = ph_file_mkdir(in_dir("d"), &err);
  if (!s) {
    s = ph_file_write(in_dir("d/f"), "text", 4, &err);
  }
  if (!s) {
    s = ph_file_append_line(in_dir("d/g"), "text", 4, &err);
  }
  if (!s) {
    s = ph_file_read(in_dir("d/f"), 0, &text, &n, &err);
  }
  if (!s) {
    s = ph_file_list(in_dir("d"), &names, &n, &err);
  }
  if (!s) {
    s = ph_sha256_file(in_dir("d/f"), hex, &err);
  }
  if (!s) {
    s = ph_lock_take(&lock, in_dir("d/.lock"), &err);
  }
  ph_lock_release(lock);
  ph_mem_free(text);
  ph_mem_free(names);
  return s;
}

static void memory_runs_out(void **state) {
  (void)state;
  ph_each_failed_allocation(all_calls());
  assert_int_equal(count_files(), 1);
}

/* ---- locks ---- */

static void lock_excludes(void **state) {
  (void)state;
  const char *path = in_dir(".lock");
  char mine[64];
  ph_lock *a;
  ph_lock *b;
  ph_ok(ph_lock_take(&a, path, &err));
  snprintf(mine, sizeof mine, "in use by process %ld", (long)getpid());
  ph_fails(PH_E_LOCKED, mine, ph_lock_take(&b, path, &err), err);
  pid_t pid = fork();
  if (pid == 0) {
    ph_status s = ph_lock_take(&b, path, &err);
    ph_lock_release(a);
    _exit(s == PH_E_LOCKED && strstr(err.text, mine) ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
  ph_lock_release(a);
  ph_ok(ph_lock_take(&b, path, &err));
  ph_lock_release(b);
  ph_lock_release(NULL);
  check_file(path, "");
}

/* A child that lets go of the copy it was born with does not unlock for its parent. */
static void lock_survives_a_child(void **state) {
  (void)state;
  const char *path = in_dir(".lock");
  ph_lock *a;
  ph_lock *b;
  ph_ok(ph_lock_take(&a, path, &err));
  pid_t pid = fork();
  if (pid == 0) {
    ph_lock_release(a);
    _exit(0);
  }
  assert_int_equal(waitpid(pid, NULL, 0), pid);
  ph_fails(PH_E_LOCKED, "in use", ph_lock_take(&b, path, &err), err);
  ph_lock_release(a);
}

/* kill -9 of the holder: the next one gets the lock, whatever the file says. */
static void lock_dies_with_its_holder(void **state) {
  (void)state;
  const char *path = in_dir(".lock");
  int ready[2];
  char byte;
  ph_lock *a;
  assert_int_equal(pipe(ready), 0);
  pid_t pid = fork();
  if (pid == 0) {
    if (ph_lock_take(&a, path, &err) == PH_OK && write(ready[1], "x", 1) == 1) {
      pause();
    }
    _exit(1);
  }
  assert_int_equal(read(ready[0], &byte, 1), 1);
  ph_fails(PH_E_LOCKED, "in use by process", ph_lock_take(&a, path, &err), err);
  kill(pid, SIGKILL);
  assert_int_equal(waitpid(pid, NULL, 0), pid);
  ph_ok(ph_lock_take(&a, path, &err));
  ph_lock_release(a);
  close(ready[0]);
  close(ready[1]);
}

/* Eight processes ask at once, again and again: never two inside. */
static void lock_under_contention(void **state) {
  (void)state;
  enum { PROCESSES = 8, TIMES = 50 };
  pid_t pid[PROCESSES];
  for (int p = 0; p < PROCESSES; p++) {
    pid[p] = fork();
    if (pid[p] != 0) {
      continue;
    }
    for (int got = 0; got < TIMES;) {
      ph_lock *lock;
      if (ph_lock_take(&lock, in_dir(".lock"), &err) != PH_OK) {
        usleep(200);
        continue;
      }
      int fd = open(in_dir("inside"), O_CREAT | O_EXCL | O_WRONLY, 0600);
      if (fd < 0) {
        _exit(1);
      }
      close(fd);
      unlink(in_dir("inside"));
      ph_lock_release(lock);
      got++;
    }
    _exit(0);
  }
  for (int p = 0; p < PROCESSES; p++) {
    int status;
    assert_int_equal(waitpid(pid[p], &status, 0), pid[p]);
    assert_int_equal(status, 0);
  }
}

static void lock_says_why_not(void **state) {
  (void)state;
  ph_lock *a;
  ph_fails(PH_E_NOTFOUND, "cannot lock: No such file", ph_lock_take(&a, in_dir("none/.lock"), &err), err);
  ph_fails(PH_E_IO, "Is a directory", ph_lock_take(&a, dir, &err), err);
}

/* ---- SHA-256 ---- */

/* FIPS 180-2, appendix B, and the empty message. */
static void sha256_known_answers(void **state) {
  (void)state;
  static const struct {
    const char *text, *hex;
  } known[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
  };
  char hex[65];
  for (int i = 0; i < PH_COUNT(known); i++) {
    ph_sha256(known[i].text, strlen(known[i].text), hex);
    assert_string_equal(hex, known[i].hex);
  }
  char *a = ph_mem_new(1000001, 1);
  memset(a, 'a', 1000000);
  ph_ok(ph_file_write(in_dir("a"), a, 1000000, &err));
  ph_mem_free(a);
  ph_ok(ph_sha256_file(in_dir("a"), hex, &err));
  assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  ph_fails(PH_E_NOTFOUND, "No such file", ph_sha256_file(in_dir("b"), hex, &err), err);
  ph_fails(PH_E_IO, "it is a directory", ph_sha256_file(dir, hex, &err), err);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, dir_setup, dir_check)

int main(void) {
  const struct CMUnitTest tests[] = {
      T(write_replaces),
      T(write_fails_whole),
      T(write_says_why_not),
      T(append_fails_whole),
      T(append_to_a_full_disk),
      T(full_disk),
      T(read_only_disk),
      T(read_checks),
      T(folders),
      T(memory_runs_out),
      T(lock_excludes),
      T(lock_survives_a_child),
      T(lock_says_why_not),
      T(lock_dies_with_its_holder),
      T(lock_under_contention),
      T(sha256_known_answers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
