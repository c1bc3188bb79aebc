package timer

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

// Health of the service.
type Health struct {
	// Status is "up" or "degraded".
	Status string `json:"status"`
	// Database is "connected" or "disconnected".
	Database  string    `json:"database"`
	Timestamp time.Time `json:"timestamp"`
}

// Health says how the service is. One that is degraded answers, too: that is no error.
func (c *Client) Health(ctx context.Context) (health Health, err error) {
	err = c.do(ctx, get("/healthz", nil), &health)
	var failure *Error
	if errors.As(err, &failure) && failure.Status == http.StatusInternalServerError && json.Unmarshal(failure.data, &health) == nil {
		err = nil
	}
	return health, err
}

// Ping says whether the service answers.
func (c *Client) Ping(ctx context.Context) error { return c.do(ctx, get("/ping", nil), nil) }

// Metrics in the text format of Prometheus.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	text, err := c.text(ctx, "/metrics")
	return string(text), err
}

// OpenAPI is the description of the API.
func (c *Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	return c.text(ctx, "/openapi.json")
}

func (c *Client) text(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request := get(path, nil)
	request.accept = "*/*"
	body, err := c.open(ctx, request)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, unreachable(err)
	}
	return text, nil
}

// Rights of a key.
type Rights string

// A key that reads, or one that also changes.
const (
	Read  Rights = "read"
	Write Rights = "write"
)

// Caller is the key of a request.
type Caller struct {
	Administrator bool   `json:"administrator"`
	ID            string `json:"id"`
	Name          string `json:"name"`
	Rights        Rights `json:"rights"`
	// Namespaces that it opens; nil for all.
	Namespaces []string `json:"namespaces"`
}

// WhoAmI says what the key of this client opens.
func (c *Client) WhoAmI(ctx context.Context) (caller Caller, err error) {
	err = c.do(ctx, get("/whoami", nil), &caller)
	return caller, err
}

// Cluster is the nodes that share the work, by the clock of the database.
type Cluster struct {
	Now                  time.Time `json:"now"`
	Nodes                []Node    `json:"nodes"`
	Shards               []Shard   `json:"shards"`
	OldestOverdueSeconds float64   `json:"oldest_overdue_seconds"`
	// Moves are the latest acquisitions of shards, the latest first.
	Moves []ShardMove `json:"moves"`
}

// ShardMove is a shard that a node has acquired; From is empty where no former owner is known.
type ShardMove struct {
	At    time.Time `json:"at"`
	Shard int       `json:"shard"`
	Epoch int64     `json:"epoch"`
	From  string    `json:"from"`
	To    string    `json:"to"`
}

// Node is one process.
type Node struct {
	ID               string    `json:"id"`
	Name             string    `json:"name"`
	Version          string    `json:"version"`
	StartedAt        time.Time `json:"started_at"`
	Alive            bool      `json:"alive"`
	TakesShards      bool      `json:"takes_shards"`
	LeaseSecondsLeft float64   `json:"lease_seconds_left"`
	ClockSkewSeconds float64   `json:"clock_skew_seconds"`
	Shards           int       `json:"shards"`
	InFlight         int64     `json:"in_flight"`
	FiresPerSecond   float64   `json:"fires_per_second"`
}

// Shard is a part of the timers.
type Shard struct {
	Shard int    `json:"shard"`
	Epoch int64  `json:"epoch"`
	Owner string `json:"owner"`
}

// Cluster shows the nodes. It takes the key of the administrator.
func (c *Client) Cluster(ctx context.Context) (cluster Cluster, err error) {
	err = c.do(ctx, get("/cluster", nil), &cluster)
	return cluster, err
}
