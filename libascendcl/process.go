package main

// #include <stdint.h>
import "C"

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"

	"halstream/bindings/ascendcl"
	"halstream/hal"
	"halstream/hal/driver"
)

// session is the process's use of the library: how often it was begun, and with what.
var session struct {
	mu       sync.Mutex
	users    uint64
	ended    bool
	settings string
	// given is the text of the configuration file.
	given string
	// standing is the device of threads that have no context and chose none, -1 for none.
	standing int32
	// oneText is set if all threads share the text of the last failure.
	oneText bool
	text    string
	// limit is how many seconds a stream waits for an event, 0 without a limit.
	limit uint32
}

func init() { session.standing = -1 }

// settings are those of the configuration file that have an effect.
type settings struct {
	DefaultDevice struct {
		DefaultDevice any `json:"default_device"`
	} `json:"defaultDevice"`
	Mode any `json:"err_msg_mode"`
}

// readSettings returns the settings of a file, its text, and them in one form, so that equal ones compare equal.
func readSettings(path string) (s settings, raw, form string, err error) {
	if path == "" {
		return s, "", "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return s, "", "", refuse(ascendcl.InvalidFile, "%v", err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return s, "", "", refuse(ascendcl.ParseFile, "%s: %v", path, err)
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, "", "", refuse(ascendcl.ParseFile, "%s: %v", path, err)
	}
	if len(all) > 0 {
		sorted, err := json.Marshal(all)
		if err != nil {
			return s, "", "", refuse(ascendcl.ParseFile, "%s: %v", path, err)
		}
		form = string(sorted)
	}
	return s, string(text), form, nil
}

//export hsAclInit
func hsAclInit(me C.uint32_t, path *C.char) C.int {
	repeated := false
	code := call(me, func(*caller) error {
		name := ""
		if path != nil {
			name = C.GoString(path)
		}
		s, raw, form, err := readSettings(name)
		if err != nil {
			return err
		}
		standing := int32(-1)
		if given := s.DefaultDevice.DefaultDevice; given != nil {
			n, err := strconv.ParseUint(fmt.Sprint(given), 10, 31)
			if err != nil {
				return refuse(ascendcl.InvalidParam, "default_device is a number, not %v", given)
			}
			if _, err := device(C.int32_t(n)); err != nil {
				return err
			}
			standing = int32(n)
		}
		session.mu.Lock()
		defer session.mu.Unlock()
		if session.users > 0 && form != session.settings {
			return refuse(ascendcl.InvalidParam, "the runtime is already in use with other settings")
		}
		session.users++
		session.ended = false
		if repeated = session.users > 1; repeated {
			return nil
		}
		session.settings, session.given, session.standing = form, raw, standing
		session.oneText = s.Mode != nil && fmt.Sprint(s.Mode) == "1"
		return nil
	})
	if repeated {
		return ascendcl.RepeatInitialize // no failure: it counts all the same
	}
	return code
}

// hsAclSettings returns the text of the configuration file; the caller frees it.
//
//export hsAclSettings
func hsAclSettings() *C.char {
	session.mu.Lock()
	defer session.mu.Unlock()
	return C.CString(session.given)
}

// end counts one user less, or all of them, and returns how many are left.
func end(everyone bool) (uint64, error) {
	session.mu.Lock()
	defer session.mu.Unlock()
	if session.users == 0 && (session.ended || !everyone) {
		return 0, refuse(ascendcl.RepeatFinalize, "the runtime has no users any more")
	}
	if everyone {
		session.users = 0
	} else {
		session.users--
	}
	if session.users == 0 {
		session.ended, session.standing, session.oneText = true, -1, false
	}
	return session.users, nil
}

//export hsAclFinalize
func hsAclFinalize(me C.uint32_t) C.int {
	return call(me, func(*caller) error {
		_, err := end(true)
		return err
	})
}

//export hsAclFinalizeReference
func hsAclFinalizeReference(me C.uint32_t, left *C.uint64_t) C.int {
	return call(me, func(*caller) error {
		if left == nil {
			return missing("the count")
		}
		n, err := end(false)
		if err == nil {
			*left = C.uint64_t(n)
		}
		return err
	})
}

// adopt gives a thread the default device's context, if the settings have one.
func adopt(c *caller) bool {
	session.mu.Lock()
	standing := session.standing
	session.mu.Unlock()
	if standing < 0 {
		return false
	}
	d, err := device(C.int32_t(standing))
	if err == nil {
		_, err = d.UsePrimary(c.t)
	}
	return err == nil
}

//export hsAclGetRecentErrMsg
func hsAclGetRecentErrMsg(me C.uint32_t) *C.char { return callerOf(me).takeText() }

//export hsAclLastError
func hsAclLastError(me C.uint32_t, level C.int32_t, forget C.int) C.int {
	c := callerOf(me)
	if level != 0 {
		return C.int(c.fail(refuse(ascendcl.ParamInvalid, "the level of an error is 0, not %d", level), nil))
	}
	code := c.code
	if forget != 0 {
		c.code = 0
	}
	return C.int(code)
}

// socName is the name of the device, made once.
var socName struct {
	sync.Mutex
	text *C.char
}

//export hsAclGetSocName
func hsAclGetSocName() *C.char {
	socName.Lock()
	defer socName.Unlock()
	if socName.text == nil {
		if d, err := device(0); err == nil {
			socName.text = C.CString(d.Name())
		}
	}
	return socName.text
}

// limitOf converts milliseconds of a wait of the host: -1 is no limit, 0 is not allowed.
func limitOf(ms C.int32_t) (int64, error) {
	switch {
	case ms == -1:
		return driver.Forever, nil
	case ms <= 0:
		return 0, refuse(ascendcl.ParamInvalid, "the time limit is -1 or more than 0 milliseconds, not %d", ms)
	}
	return int64(ms) * 1e6, nil
}

// waited is the error of a wait whose limit passed, and that of the device.
func waited(done bool, err error, code int, d *hal.Device, ms C.int32_t) error {
	if err == nil && !done {
		err = refuse(code, "the work was not done within %d ms; it goes on, and can be waited for again", ms)
	}
	if err == nil && d != nil {
		err = d.Lost()
	}
	return err
}

//export hsAclNoPackage
func hsAclNoPackage(me C.uint32_t, name *C.char) C.int {
	return call(me, func(*caller) error {
		return refuse(ascendcl.LibraryError, "there is no package %q here, only \"runtime\"", C.GoString(name))
	})
}
