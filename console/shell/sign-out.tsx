/** Signs the user out. A user who could not sign in again confirms first. */
import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { deleteSession, useSession } from '../client/session.ts';
import { Confirm } from '../components/confirm.tsx';
import { defineTexts, useTexts } from '../texts/texts.ts';

export function SignOut({ className }: { className: string | undefined }): ReactNode {
  const texts = useTexts(TEXTS);
  const { user } = useSession();
  const [isAsking, setAsking] = useState(false);
  const signOut = useMutation({
    mutationFn: deleteSession,
    // A full load leaves nothing of the tenant in memory, and the names of opened records end with the session.
    onSuccess: () => {
      sessionStorage.clear();
      location.assign('/sign-in');
    },
  });
  return (
    <>
      <button
        type="button"
        className={className}
        onClick={() => (user.email === null ? setAsking(true) : signOut.mutate())}
      >
        {texts.signOut}
      </button>
      {isAsking && (
        <Confirm
          needs={null}
          title={texts.signOutTitle}
          action={texts.signOut}
          isDangerous
          onConfirm={() => signOut.mutateAsync()}
          onClose={() => setAsking(false)}
        >
          <p>{texts.noSignIn}</p>
          <p>
            <Link
              from="/env/$environment_id"
              to="/env/$environment_id/settings"
              search={(old) => ({ ...old, tab: 'account' })}
              onClick={() => setAsking(false)}
            >
              {texts.setSignIn}
            </Link>
          </p>
        </Confirm>
      )}
    </>
  );
}

const TEXTS = defineTexts(
  {
    signOut: 'Sign out',
    signOutTitle: 'Sign out for good?',
    noSignIn:
      'You signed in by the one-time link and have not set e-mail and password yet. After signing out you cannot sign in again.',
    setSignIn: 'Set e-mail and password',
  },
  {
    de: {
      signOut: 'Abmelden',
      signOutTitle: 'Endgültig abmelden?',
      noSignIn:
        'Sie haben sich über den Einmal-Link angemeldet und noch keine E-Mail und kein Passwort festgelegt. Nach dem Abmelden können Sie sich nicht mehr anmelden.',
      setSignIn: 'E-Mail und Passwort festlegen',
    },
  },
);
