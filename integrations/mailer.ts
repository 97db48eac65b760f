/** Interface of a provider that sends mail. */
type Mail = {
  readonly to: string;
  readonly reply_to: string | null;
  readonly bcc: readonly string[];
  readonly subject: string;
  readonly text: string;
  readonly attachment: { readonly name: string; readonly type: string; readonly bytes: Buffer };
  /** Id of the mail, equal in each attempt, so that a server may drop a duplicate. */
  readonly message_id: string;
};
/** Result of a mail. `refused` means that the server rejected the mail for good, so no retry will succeed. */
export type MailResult = { readonly outcome: 'sent' } | { readonly outcome: 'refused'; readonly detail: string };

export type Mailer = { send(mail: Mail): Promise<MailResult> };
