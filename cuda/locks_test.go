package cuda

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// harmless are functions in C that do not take Python's lock. The library is loaded by one thread at a time.
var harmless = []string{"hs_self", "hs_has", "hs_code", "hs_mapped", "hs_guard_new", "hs_symbol", "hs_load", "hs_open"}

// source is the functions of packages, by name and number of parameters: those that
// agree in both count as one, which can find a call too many and none too few.
type source struct {
	files *token.FileSet
	calls map[string][]string // names of what each one calls
	all   []*ast.FuncDecl
}

func parse(t *testing.T, folders ...string) *source {
	t.Helper()
	s := &source{files: token.NewFileSet(), calls: map[string][]string{}}
	var paths []string
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, found, folder)
		paths = append(paths, found...)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.files, path, nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				s.all = append(s.all, f)
				key := fmt.Sprintf("%s/%d", f.Name.Name, f.Type.Params.NumFields())
				if f.Recv != nil {
					key = "." + key
				}
				ast.Inspect(f.Body, func(n ast.Node) bool {
					if c, ok := n.(*ast.CallExpr); ok {
						s.calls[key] = append(s.calls[key], called(c))
					}
					return true
				})
			}
		}
	}
	return s
}

// called returns the last name of what is called and the number of its arguments, as in "name/1", ".Lock/0" of a
// method, and "C.name" for C.
func called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return fmt.Sprintf("%s/%d", f.Name, len(c.Args))
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok && x.Name == "C" {
			return "C." + f.Sel.Name
		}
		return fmt.Sprintf(".%s/%d", f.Sel.Name, len(c.Args))
	}
	return ""
}

// reaches returns a way from a function to a call of the driver, nil if there is none.
func (s *source) reaches(name string, seen map[string]bool) []string {
	if in, ok := strings.CutPrefix(name, "C.hs_"); ok && !slices.Contains(harmless, "hs_"+in) {
		return []string{name}
	}
	if seen[name] {
		return nil
	}
	seen[name] = true
	for _, next := range s.calls[name] {
		if way := s.reaches(next, seen); way != nil {
			return append([]string{name}, way...)
		}
	}
	return nil
}

// locked returns the calls that a function makes between Lock and Unlock, in the order of the text. A
// deferred Unlock is at the end.
func locked(f *ast.FuncDecl) (calls []*ast.CallExpr) {
	held := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeferStmt, *ast.GoStmt, *ast.FuncLit:
			return false
		case *ast.CallExpr:
			switch name := called(n); {
			case name == ".Lock/0":
				held = true
			case name == ".Unlock/0":
				held = false
			case held:
				calls = append(calls, n)
			}
		}
		return true
	})
	return calls
}

// A call of the driver releases Python's lock and takes it again: a thread that waits there for it
// must not hold a lock for which a thread with Python's lock may wait.
func TestS2_no_lock_is_held_across_a_call_of_the_driver(t *testing.T) {
	s := parse(t, ".", filepath.Join("..", "hal", "vendor"))
	found := 0
	for _, f := range s.all {
		for _, c := range locked(f) {
			found++
			way := s.reaches(called(c), map[string]bool{})
			assert.Nil(t, way, "%s: %s calls the driver under a lock: %s",
				s.files.Position(c.Pos()), f.Name.Name, strings.Join(way, " -> "))
		}
	}
	require.Greater(t, found, 30, "the search has not seen the locks")
}
