/**
 * For receivers: verifies the calls of timers, and answers them. {@link io.github.timerplatform.webhook.WebhookFilter} does it for
 * servlets, and so for Spring; it needs the Servlet API 5 or later.
 */
package io.github.timerplatform.webhook;
