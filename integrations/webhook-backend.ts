/** Interface of a webhook backend, which sends a message to its receiver and returns the result. */

export type WebhookMessage = {
  /** Id of the system event, equal in every attempt, so that a receiver recognizes a repetition. */
  readonly id: string;
  readonly event_name: string;
  /** Bytes that are signed and sent. */
  readonly body: string;
  readonly tenant_id: string;
  readonly environment_id: string;
};

export type SendOutcome = {
  readonly url: string;
  /** HTTP status of the answer; null if there was none. */
  readonly http_status: number | null;
  readonly response_body: string | null;
  /** Reason of the failure; null if the receiver accepted the message. */
  readonly error: string | null;
  /** Detail for the log of this service only. */
  readonly detail?: string;
  readonly duration_ms: number;
};

/** Endpoint to which the built-in backend sends. A managed service stores its endpoints itself, so it gets none. */
export type WebhookTarget = { readonly url: string; readonly secrets: readonly string[] };

export type WebhookScope = Pick<WebhookMessage, 'tenant_id' | 'environment_id'>;

export interface WebhookBackend {
  /** Whether this service stores the endpoints, so that every message has a target. */
  readonly has_targets: boolean;
  /** Sends a message. A failure of the receiver is returned, never thrown. */
  send(message: WebhookMessage, target: WebhookTarget | null): Promise<SendOutcome>;
  /** Returns the address of the page on which the managed service shows the endpoints. */
  dashboard?(
    scope: WebhookScope,
    caller: { may_change: boolean },
  ): Promise<{ url: string; token: string; app_id: string }>;
}
