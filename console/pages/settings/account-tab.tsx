/** The account of the person who is signed in: name, sign-in, and the browsers that are signed in. */
import { PasswordInput, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api } from '../../client/client.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { useSession } from '../../client/session.ts';
import { CopyId } from '../../components/copy.tsx';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { useShowMessage } from '../../components/message.ts';
import { Facts, Section, Sheet } from '../../components/page.tsx';
import { Loaded } from '../../components/states.tsx';
import { useTexts } from '../../texts/texts.ts';
import { ACCOUNT_TEXTS } from './account-texts.ts';
import { RoleNames } from './role-names.tsx';
import { Sessions } from './sessions.tsx';
import styles from './settings.module.css';

const PASSWORD_LENGTH_MIN = 8;
type Me = { id: string; name: string | null; email: string | null; roles: string[] | null };

export function AccountTab(): ReactNode {
  const me = useGet('/users/me');
  return <Loaded query={me}>{(loaded) => <Account me={loaded} />}</Loaded>;
}

function Account({ me }: { me: Me }): ReactNode {
  const texts = useTexts(ACCOUNT_TEXTS);
  const { tenant } = useSession();
  return (
    <div className={styles.narrowForm}>
      {me.email === null && (
        <div className={styles.notice} role="status">
          <p>{texts.noEmail}</p>
        </div>
      )}
      {me.email === null && <SignInForm me={me} />}
      <Section title={texts.profile}>
        <Sheet>
          <Facts
            facts={[
              { label: texts.email, value: me.email === null ? '–' : <bdi>{me.email}</bdi> },
              { label: texts.roles, value: <RoleNames roles={me.roles ?? []} /> },
              { label: texts.company, value: <bdi>{tenant.name}</bdi> },
              { label: texts.id, value: <CopyId id={me.id} /> },
            ]}
          />
          <NameForm name={me.name ?? ''} />
        </Sheet>
      </Section>
      {me.email !== null && <SignInForm me={me} />}
      <Sessions />
    </div>
  );
}

function NameForm({ name }: { name: string }): ReactNode {
  const texts = useTexts(ACCOUNT_TEXTS);
  const queries = useQueryClient();
  const [text, setText] = useState(name);
  const save = useDeed(
    () => api.PUT('/users/me', { body: { name: text.trim() === '' ? null : text } }),
    () => invalidate(queries, '/users', '/auth/session'),
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(undefined);
  };
  return (
    <form className={styles.part} onSubmit={submit} aria-label={texts.profile}>
      <TextInput
        label={texts.name}
        description={texts.nameHint}
        autoComplete="name"
        value={text}
        error={findFieldError(save, 'name')}
        onChange={({ currentTarget }) => setText(currentTarget.value)}
      />
      <FormFoot
        needs={null}
        deed={save}
        fields={['name']}
        action={texts.saveName}
        blocked={text === name ? texts.noChange : null}
      />
    </form>
  );
}

const NO_DRAFT = { email: '', password: '', current: '' };

/** Sets e-mail and password of a user that came by the one-time link, or changes the password. */
function SignInForm({ me: { email } }: { me: Me }): ReactNode {
  const texts = useTexts(ACCOUNT_TEXTS);
  const showMessage = useShowMessage();
  const isFirst = email === null;
  const queries = useQueryClient();
  const [draft, setDraft] = useState(NO_DRAFT);
  const save = useDeed(
    () =>
      api.PUT('/users/me', {
        body: isFirst
          ? { email: draft.email, password: draft.password }
          : { password: draft.password, current_password: draft.current },
      }),
    async () => {
      // The page has read its session, which names the user, before the e-mail was set.
      if (isFirst) return location.reload();
      setDraft(NO_DRAFT);
      showMessage(texts.passwordChanged);
      await invalidate(queries, '/auth/sessions');
    },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate(undefined);
  };
  const isShort = draft.password.length < PASSWORD_LENGTH_MIN;
  return (
    <Section title={isFirst ? texts.setSignIn : texts.password} hint={isFirst ? undefined : texts.passwordHint}>
      <Sheet>
        <form className={styles.part} onSubmit={submit} aria-label={isFirst ? texts.setSignIn : texts.password}>
          {isFirst ? (
            <TextInput
              type="email"
              label={texts.email}
              autoComplete="username"
              required
              value={draft.email}
              error={findFieldError(save, 'email')}
              onChange={({ currentTarget }) => setDraft({ ...draft, email: currentTarget.value })}
            />
          ) : (
            <PasswordInput
              label={texts.current}
              autoComplete="current-password"
              required
              visibilityToggleButtonProps={{ 'aria-label': texts.showPassword }}
              value={draft.current}
              error={findFieldError(save, 'current_password')}
              onChange={({ currentTarget }) => setDraft({ ...draft, current: currentTarget.value })}
            />
          )}
          <PasswordInput
            label={isFirst ? texts.password : texts.newPassword}
            description={texts.passwordLength(PASSWORD_LENGTH_MIN)}
            autoComplete="new-password"
            required
            visibilityToggleButtonProps={{ 'aria-label': texts.showPassword }}
            value={draft.password}
            error={findFieldError(save, 'password')}
            onChange={({ currentTarget }) => setDraft({ ...draft, password: currentTarget.value })}
          />
          <FormFoot
            needs={null}
            deed={save}
            fields={['email', 'password', 'current_password']}
            action={isFirst ? texts.saveSignIn : texts.changePassword}
            blocked={isShort ? texts.passwordLength(PASSWORD_LENGTH_MIN) : null}
          />
        </form>
      </Sheet>
    </Section>
  );
}
