/** How a webhook leaves the house: given a message, a backend hands it to whoever receives it and answers how that went. */

export type WebhookMessage = {
  /** Of the system event: the same for every try, so that a receiver knows a repeat. */
  readonly id: string;
  readonly event_name: string;
  /** The bytes that are sent, and signed. */
  readonly body: string;
  readonly tenant_id: string;
  readonly environment_id: string;
};

export type SendOutcome = {
  readonly url: string;
  /** Null when nothing was answered. */
  readonly http_status: number | null;
  readonly response_body: string | null;
  /** Null when it was taken. */
  readonly error: string | null;
  /** What is only for our own log. */
  readonly detail?: string;
  readonly duration_ms: number;
};

/** Where our own backend sends to; with a managed service there are no endpoints of ours. */
export type WebhookTarget = { readonly url: string; readonly secrets: readonly string[] };

export type WebhookScope = Pick<WebhookMessage, 'tenant_id' | 'environment_id'>;

export interface WebhookBackend {
  /** Whether the endpoints are ours: then every message has a target. */
  readonly has_targets: boolean;
  /** Never throws for what the receiver does. */
  send(message: WebhookMessage, target: WebhookTarget | null): Promise<SendOutcome>;
  /** Where endpoints are looked after, where that is not here. */
  dashboard?(
    scope: WebhookScope,
    caller: { may_change: boolean },
  ): Promise<{ url: string; token: string; app_id: string }>;
}
