/* replay.c - stands in for libFuzzer: feeds every file of the given directories to the target, in the order of their names. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int die(const char *path) {
  perror(path);
  exit(2);
}

static void feed(const char *path) {
  FILE *file = fopen(path, "rb");
  struct stat info;
  if (!file || fstat(fileno(file), &info)) {
    die(path);
  }
  size_t size = (size_t)info.st_size;
  uint8_t *data = malloc(size ? size : 1); /* an exact block, so that a sanitizer sees the first byte read beyond it */
  if (!data || fread(data, 1, size, file) != size) {
    die(path);
  }
  fclose(file);
  printf("# %s\n", path); /* before the call: after a crash the last line names the input */
  fflush(stdout);
  LLVMFuzzerTestOneInput(data, size);
  free(data);
}

static int visible(const struct dirent *e) { return e->d_name[0] != '.'; }

static int feed_all(const char *dir) {
  struct dirent **entry;
  int n = scandir(dir, &entry, visible, alphasort);
  if (n < 0) {
    die(dir);
  }
  for (int i = 0; i < n; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, entry[i]->d_name);
    feed(path);
    free(entry[i]);
  }
  free(entry);
  return n;
}

int main(int argc, char **argv) {
  int fed = 0;
  for (int i = 1; i < argc; i++) {
    fed += feed_all(argv[i]);
  }
  printf("%s 1 - %d inputs\n", fed > 0 ? "ok" : "not ok", fed); /* an empty corpus checks nothing */
  return fed > 0 ? 0 : 1;
}
