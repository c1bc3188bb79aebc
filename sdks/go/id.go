package timer

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net/url"
	"time"
)

// Ref names one timer: an [ID], or a [Key] where the timer was created with one.
type Ref interface{ path() string }

// ID of a timer, a UUID.
type ID string

// Key names a timer by what it was created with.
type Key struct{ Namespace, Key string }

func (id ID) path() string { return "/timers/" + url.PathEscape(string(id)) }

func (k Key) path() string {
	return "/namespaces/" + url.PathEscape(firstOf(k.Namespace, "default")) + "/timers/" + url.PathEscape(k.Key)
}

// NewID makes a UUID of version 7, which sorts by its time. Creates without an id or a key get one by themselves.
func NewID() ID {
	var b [16]byte
	_, _ = rand.Read(b[8:]) // never fails
	_, _ = rand.Read(b[6:8])
	var millis [8]byte
	binary.BigEndian.PutUint64(millis[:], uint64(time.Now().UnixMilli()))
	copy(b[:6], millis[2:])
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return ID(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]))
}
