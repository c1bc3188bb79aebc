// A reminder in two days, which moves when the customer comes back and which is gone when the order is placed.
//
//	TIMER_URL=http://127.0.0.1:8080 TIMER_API_KEY=… go run ./reminder "$RECEIVER/remind"
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	timer "github.com/timer-platform/timer-platform/sdks/go"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url string) error {
	client, err := timer.NewClient()
	if err != nil {
		return err
	}
	reminder := timer.NewTimer{
		Namespace: "shop",
		Key:       "cart-4711",
		// Each create postpones the same timer: it fires two days after the last.
		OnConflict:  timer.Postpone,
		Delay:       48 * time.Hour,
		Callback:    timer.HTTP{URL: url, Payload: map[string]int{"cart": 4711}},
		RetryPolicy: &timer.RetryPolicy{MaxRetries: 5, InitialInterval: time.Minute},
	}
	for visit := 1; visit <= 2; visit++ {
		registered, err := client.Timers.Create(ctx, reminder)
		if err != nil {
			return err
		}
		fmt.Printf("visit %d: reminder %s at %s\n", visit, registered.ID, registered.ExecuteAt.Format(time.RFC3339))
	}

	// A second cart is ordered: its reminder is not needed any more.
	reminder.Key = "cart-4712"
	if _, err := client.Timers.Create(ctx, reminder); err != nil {
		return err
	}
	if _, err := client.Timers.Cancel(ctx, timer.Key{Namespace: "shop", Key: "cart-4712"}); err != nil {
		return err
	}
	for found, err := range client.Timers.List(ctx, timer.ListQuery{Filter: timer.Filter{Namespace: []string{"shop"}}}) {
		if err != nil {
			return err
		}
		fmt.Println(found.Key, found.Status)
	}
	return nil
}
