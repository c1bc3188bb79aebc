package timer

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Keys are API keys that were issued. They take the key of the administrator.
type Keys struct{ client *Client }

// NewKey is a key to be issued.
type NewKey struct {
	Name string
	// Namespaces that it opens; nil for all.
	Namespaces []string
	Rights     Rights
}

func (k NewKey) write(o *object) {
	o.string("name", k.Name)
	if k.Namespaces == nil {
		o.raw("namespaces", []byte("null"))
	} else {
		o.json("namespaces", k.Namespaces)
	}
	o.string("rights", string(k.Rights))
}

// APIKey is a key without what opens anything.
type APIKey struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Namespaces []string  `json:"namespaces"`
	Rights     Rights    `json:"rights"`
	CreatedAt  time.Time `json:"created_at"`
	// LastUsedAt is known to the minute; it is zero if no use of it is recorded.
	LastUsedAt time.Time `json:"last_used_at"`
	RevokedAt  time.Time `json:"revoked_at"`
}

// IssuedKey is a new key. Its text is shown this once.
type IssuedKey struct {
	APIKey
	Key string `json:"key"`
}

// Create issues a key. It is sent once.
func (s *Keys) Create(ctx context.Context, key NewKey) (issued IssuedKey, err error) {
	body, err := objectOf(key)
	if err != nil {
		return issued, err
	}
	err = s.client.do(ctx, call{method: http.MethodPost, path: "/keys", body: body}, &issued)
	return issued, err
}

// List shows every key that was issued, revoked ones included.
func (s *Keys) List(ctx context.Context) ([]APIKey, error) {
	var answer struct {
		Keys []APIKey `json:"keys"`
	}
	err := s.client.do(ctx, get("/keys", nil), &answer)
	return answer.Keys, err
}

// Revoke takes a key out of use. Doing it again is no error.
func (s *Keys) Revoke(ctx context.Context, id string) error {
	return s.client.do(ctx, call{method: http.MethodDelete, path: "/keys/" + url.PathEscape(id), idempotent: true}, nil)
}
