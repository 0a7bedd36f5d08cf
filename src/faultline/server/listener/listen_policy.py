"""The rules for a server's addresses: beyond this machine only with keys, and never in clear text."""

from faultline.errors import ConfigError
from faultline.server.config import ServerConfig


def check_listen_policy(config: ServerConfig, *, keys: int) -> None:
    """Refuse to listen beyond loopback without API keys, and without TLS or a proxy that has it.

    >>> from faultline.server.config import ListenAddress
    >>> check_listen_policy(ServerConfig(), keys=0)
    >>> check_listen_policy(ServerConfig(http=ListenAddress("0.0.0.0", 8000), behind_proxy=True), keys=1)
    """
    beyond = [str(address) for address in config.addresses if not address.is_loopback]
    if not beyond and not config.behind_proxy:
        return
    if not keys:
        where = f"{beyond[0]} can be reached from other machines" if beyond else "a proxy stands before it"
        raise ConfigError(
            f"{where}, and there is no API key yet: make one with `faultline keys create`, "
            "or listen on 127.0.0.1 without --behind-proxy"
        )
    if beyond and config.tls is None and not config.behind_proxy:
        raise ConfigError(
            f"{beyond[0]} can be reached from other machines, and keys would travel in the clear: give "
            "--tls-cert and --tls-key, or say --behind-proxy where a proxy ends TLS before it"
        )
