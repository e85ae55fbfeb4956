/** Error boundary: a view that crashes leaves the rest intact. */
import { Component, type ReactNode } from "react";
import { useWords } from "../i18n";
import { Button } from "../ui";
import { shellWords } from "./words";

export class CrashGuard extends Component<{ place: string; children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override componentDidUpdate(before: { place: string }) {
    if (before.place !== this.props.place && this.state.error) this.setState({ error: null });
  }

  override render() {
    return this.state.error ? <Crashed error={this.state.error} /> : this.props.children;
  }
}

function Crashed({ error }: { error: Error }) {
  const t = useWords(shellWords);
  return (
    <div className="notice tone-bad" role="alert">
      <strong>{t.crashed}</strong>
      <span>{t.crashedAbout}</span>
      <code>{error.message}</code>
      <Button small onClick={() => window.location.reload()}>
        {t.reload}
      </Button>
    </div>
  );
}
