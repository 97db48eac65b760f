/** Interface of a provider that sends mail. */
type Mail = {
  readonly to: string;
  readonly reply_to: string | null;
  readonly bcc: readonly string[];
  readonly subject: string;
  readonly text: string;
  readonly attachment: { readonly name: string; readonly type: string; readonly bytes: Buffer };
  /** Id of the mail, equal for each attempt: a server that has the mail already may drop a second copy. */
  readonly message_id: string;
};
/** `refused`: no recipient got it, and no retry will succeed. */
export type MailResult = { readonly outcome: 'sent' } | { readonly outcome: 'refused'; readonly detail: string };

export type Mailer = { send(mail: Mail): Promise<MailResult> };
