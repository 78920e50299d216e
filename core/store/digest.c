/* digest.c - SHA-256 of bytes and files. The only user of libcrypto. See file.h. */
#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <unistd.h>

#include "base/mem.h"
#include "store/file.h"
#include "store/sys.h"

enum { DIGEST = 32, CHUNK = 1 << 16 };

static void to_hex(const unsigned char *d, char hex[65]) {
  static const char digit[] = "0123456789abcdef";
  for (int i = 0; i < DIGEST; i++) {
    hex[2 * i] = digit[d[i] >> 4];
    hex[2 * i + 1] = digit[d[i] & 15];
  }
  hex[2 * DIGEST] = '\0';
}

void ph_sha256(const void *bytes, size_t n, char hex[65]) {
  unsigned char d[EVP_MAX_MD_SIZE];
  int ok = EVP_Digest(bytes, n, d, NULL, EVP_sha256(), NULL);
  assert(ok == 1); /* only a broken libcrypto or no memory at all: a wrong hash must never go on from here */
  to_hex(d, hex);
}

static ph_status digest_fd(int fd, EVP_MD_CTX *ctx, unsigned char *buf, const char *path, ph_err *err) {
  for (;;) {
    ssize_t k = read(fd, buf, CHUNK);
    if (k < 0 && errno == EINTR) {
      continue;
    }
    if (k < 0) {
      return ph_sys_fail(err, path, "read", errno);
    }
    if (k == 0) {
      return PH_OK;
    }
    if (EVP_DigestUpdate(ctx, buf, (size_t)k) != 1) {
      return ph_err_set(err, PH_E_INTERNAL, "%s: libcrypto failed", path);
    }
  }
}

ph_status ph_sha256_file(const char *path, char hex[65], ph_err *err) {
  ph_err local;
  if (!err) {
    err = &local;
  }
  size_t size;
  unsigned char d[EVP_MAX_MD_SIZE];
  int fd = ph_sys_open_regular(path, &size, err);
  if (fd < 0) {
    return err->code;
  }
  ph_status status;
  EVP_MD_CTX *ctx = EVP_MD_CTX_new();
  unsigned char *buf = ph_mem_new(CHUNK, 1);
  if (!ctx || !buf || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1) {
    status = ph_err_set(err, PH_E_NOMEM, "%s: out of memory", path);
  } else {
    status = digest_fd(fd, ctx, buf, path, err);
  }
  if (status == PH_OK && EVP_DigestFinal_ex(ctx, d, NULL) != 1) {
    status = ph_err_set(err, PH_E_INTERNAL, "%s: libcrypto failed", path);
  }
  if (status == PH_OK) {
    to_hex(d, hex);
  }
  ph_mem_free(buf);
  EVP_MD_CTX_free(ctx);
  close(fd);
  return status;
}
