// The timeout of a saga: an order must be paid within 30 minutes, otherwise it is released.
//
//	TIMER_URL=http://127.0.0.1:8080 TIMER_API_KEY=… go run ./saga-timeout "$RECEIVER/release"
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	timer "github.com/timer-platform/timer-platform/sdks/go"
)

// saga of one order. Its timeout is known by the number of the order, so that any process can end it.
type saga struct {
	client  *timer.Client
	order   string
	release string
}

func main() {
	client, err := timer.NewClient()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	paid := saga{client, "order-42", os.Args[1]}
	late := saga{client, "order-43", os.Args[1]}
	for _, err := range []error{paid.begin(ctx), late.begin(ctx), paid.pay(ctx)} {
		if err != nil {
			log.Fatal(err)
		}
	}
	// The second order is never paid. Its time is over at once here, so that there is something to see.
	if _, err := client.Timers.Fire(ctx, late.timeout()); err != nil {
		log.Fatal(err)
	}
}

func (s saga) timeout() timer.Key { return timer.Key{Namespace: "orders", Key: s.order + "/timeout"} }

// begin may be repeated: the same key and content are the same timer.
func (s saga) begin(ctx context.Context) error {
	_, err := s.client.Timers.Create(ctx, timer.NewTimer{
		Namespace: "orders", Key: s.timeout().Key, Group: s.order, Delay: 30 * time.Minute,
		Callback:    timer.HTTP{URL: s.release, Payload: map[string]string{"order": s.order}},
		RetryPolicy: &timer.RetryPolicy{MaxRetries: 20, MaxDuration: 24 * time.Hour},
	})
	return err
}

// pay ends the timeout first: a cancel that is acknowledged always wins over the firing.
func (s saga) pay(ctx context.Context) error {
	_, err := s.client.Timers.Cancel(ctx, s.timeout())
	if errors.Is(err, timer.ErrInvalid) {
		fmt.Println(s.order, "comes too late: it is being released")
		return nil
	}
	if err == nil {
		fmt.Println(s.order, "is paid")
	}
	return err
}
