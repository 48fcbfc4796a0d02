package ascendcl

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The numbers of the headers, for Python.

// Number is a number that the headers give a name.
type Number struct {
	Name string
	Is   int64
}

// leftOut begins the names of numbers that only functions use which pyACL does not have.
var leftOut = []string{"ACL_CANN_", "ACL_FEATURE_", "ACL_PKG_", "ACL_REG_", "ACL_RT_DEV_RES_", "ACL_RT_MEM_ATTR_", "ACL_RT_STREAM_"}

var (
	comment = regexp.MustCompile(`(?s)/\*.*?\*/`)
	number  = regexp.MustCompile(`(?m)(?:^#define |\b)(ACL_\w+)(?: = | )(-?(?:0x)?[0-9A-Fa-f]+)U?L?\b`)
)

// Numbers reads those of pyACL from the headers in a folder, in their order there.
func Numbers(folder string) ([]Number, error) {
	var all []Number
	for _, name := range []string{"acl_base.h", "acl_rt_types.h", "error_codes/rt_error_codes.h"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
	found:
		for _, m := range number.FindAllSubmatch(comment.ReplaceAll(text, nil), -1) {
			for _, begin := range leftOut {
				if strings.HasPrefix(string(m[1]), begin) {
					continue found
				}
			}
			is, err := strconv.ParseInt(string(m[2]), 0, 64)
			if err != nil {
				return nil, err
			}
			all = append(all, Number{string(m[1]), is})
		}
	}
	return all, nil
}
